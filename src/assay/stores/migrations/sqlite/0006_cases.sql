-- The content of cases, one row for each case of a run, people's labels, and log-in sessions.

CREATE TABLE content (  -- what a case asked and expected; equal contents are stored once
    place INTEGER NOT NULL,  -- the place of the case in its suite from 0, so that neighbours are stored together
    hash  BLOB NOT NULL,     -- hash of the whole content
    body  BLOB NOT NULL,     -- JSON object: input, expectations, evaluators, tags, metadata, source
    PRIMARY KEY (place, hash)
) WITHOUT ROWID;

ALTER TABLE trial ADD COLUMN content BLOB;  -- hash of the content of the case; empty in older runs

CREATE INDEX trial_content ON trial (position & 268435455, content) WHERE content IS NOT NULL;

CREATE TABLE login_session (  -- a person who is logged in to the pages of the server
    id_hash    TEXT PRIMARY KEY,  -- hash of the id in the cookie
    token_hash TEXT NOT NULL,     -- hash of the token that was used; without that token it is void
    created_at TEXT NOT NULL,     -- ISO 8601
    expires_at TEXT NOT NULL      -- ISO 8601
);
