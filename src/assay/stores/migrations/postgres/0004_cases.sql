-- The content of cases, one row for each case of a run, people's labels, and log-in sessions.

CREATE TABLE content (  -- what a case asked and expected; equal contents are stored once
    place BIGINT NOT NULL,  -- the place of the case in its suite from 0, so that neighbours are stored together
    hash BYTEA NOT NULL,  -- hash of the whole content
    body BYTEA NOT NULL,  -- JSON object: input, expectations, evaluators, tags, metadata, source
    PRIMARY KEY (place, hash)
);

ALTER TABLE trial ADD COLUMN content BYTEA;  -- hash of the content of the case; empty in older runs

CREATE INDEX trial_content ON trial ((position & 268435455), content) WHERE content IS NOT NULL;

CREATE TABLE login_session (  -- a person who is logged in to the pages of the server
    id_hash TEXT COLLATE "C" PRIMARY KEY,  -- hash of the id in the cookie
    token_hash TEXT NOT NULL,  -- hash of the token that was used; without that token it is void
    created_at TEXT NOT NULL,  -- ISO 8601
    expires_at TEXT COLLATE "C" NOT NULL  -- ISO 8601
);
