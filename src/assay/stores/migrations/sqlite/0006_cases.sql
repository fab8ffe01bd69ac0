-- The content of cases, one row for each case of a run, people's labels, and log-in sessions.

CREATE TABLE login_session (  -- a person who is logged in to the pages of the server
    id_hash    TEXT PRIMARY KEY,  -- hash of the id in the cookie
    token_hash TEXT NOT NULL,     -- hash of the token that was used; without that token it is void
    created_at TEXT NOT NULL,     -- ISO 8601
    expires_at TEXT NOT NULL      -- ISO 8601
);
