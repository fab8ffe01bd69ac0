-- The content of cases, one row for each case of a run, people's labels, and log-in sessions.

CREATE TABLE content (  -- what a case asked and expected; equal contents are stored once
    place INTEGER NOT NULL,  -- the place of the case in its suite from 0, so that neighbours are stored together
    hash  BLOB NOT NULL,     -- hash of the whole content
    body  BLOB NOT NULL,     -- JSON object: input, expectations, evaluators, tags, metadata, source
    PRIMARY KEY (place, hash)
);

ALTER TABLE trial ADD COLUMN content BLOB;  -- hash of the content of the case; empty in older runs

CREATE INDEX trial_content ON trial (position & 268435455, content) WHERE content IS NOT NULL;

CREATE TABLE indexed_run (  -- a run whose cases can be listed quickly; made when they are first listed
    number   INTEGER PRIMARY KEY AUTOINCREMENT,  -- what its rows call it
    run_id   TEXT NOT NULL UNIQUE REFERENCES run (id) ON DELETE CASCADE,  -- the run; it has ended
    complete INTEGER NOT NULL      -- 1 when all its rows are there
);

CREATE TABLE case_kind (  -- what many cases of a run have in common
    run    INTEGER NOT NULL REFERENCES indexed_run (number) ON DELETE CASCADE,  -- the run
    number INTEGER NOT NULL,  -- from 0
    kind   TEXT NOT NULL,     -- JSON object: suite with all its names, tags, evaluators
    PRIMARY KEY (run, number)
) WITHOUT ROWID;

CREATE TABLE case_row (  -- a case of a run over all its repeats, to be filtered and sorted
    run        INTEGER NOT NULL REFERENCES indexed_run (number) ON DELETE CASCADE,  -- the run
    position   INTEGER NOT NULL,  -- as in its trials
    suite      TEXT NOT NULL,     -- the eval file of the case
    case_id    TEXT NOT NULL,     -- id of the case in its file
    normal_id  TEXT,              -- the id in NFC; empty when it is in NFC
    kind       INTEGER NOT NULL,  -- number of its kind
    outcome    TEXT NOT NULL,     -- passed, failed, errored or skipped
    passes     INTEGER NOT NULL,  -- how many of its repeats passed
    judged     INTEGER NOT NULL,  -- how many of its repeats could be judged
    score      REAL,              -- mean of its repeats; empty when none could be judged
    cost_usd   REAL,              -- of all repeats; empty when that is not known
    latency_ms REAL NOT NULL,     -- mean of its repeats
    flaky      INTEGER NOT NULL,  -- 1 when some repeats passed and some failed
    changed    TEXT,              -- what became of it since the baseline; empty when nothing did
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

CREATE TABLE case_text (  -- the texts of a case of a run, to be searched
    run      INTEGER NOT NULL REFERENCES indexed_run (number) ON DELETE CASCADE,  -- the run
    position INTEGER NOT NULL,  -- as in its trials
    folded   BLOB NOT NULL,     -- id, question, answers and reasons without case, in UTF-8
    PRIMARY KEY (run, position)
);

CREATE TABLE comparison (  -- a comparison of two finished runs, which cannot change
    base_id      TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,  -- the run before
    candidate_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,  -- the run after
    rules        TEXT NOT NULL,  -- hash of the rules of the gate
    value        BLOB NOT NULL,  -- JSON object: the comparison
    PRIMARY KEY (base_id, candidate_id, rules)
);

CREATE INDEX comparison_candidate ON comparison (candidate_id);

CREATE TABLE label (  -- a person's verdict on an answer; it stays when its run is deleted
    run_id      TEXT NOT NULL,     -- the run that has the answer
    suite       TEXT NOT NULL,     -- the eval file of the case
    case_id     TEXT NOT NULL,     -- id of the case in its file
    repeat      INTEGER NOT NULL,  -- which repeat of the case, from 0
    evaluator   TEXT NOT NULL,     -- name of the judge that it is about; empty for the whole answer
    criterion   TEXT NOT NULL,     -- id of one criterion of the judge; empty for all
    author      TEXT NOT NULL,     -- who says so
    passed      INTEGER NOT NULL,  -- 1 when the answer is good
    answer_hash TEXT NOT NULL,     -- SHA-256 of the JSON of the answer
    created_at  TEXT NOT NULL,     -- ISO 8601
    PRIMARY KEY (run_id, suite, case_id, repeat, evaluator, criterion, author)
);

CREATE TABLE login_session (  -- a person who is logged in to the pages of the server
    id_hash    TEXT PRIMARY KEY,  -- hash of the id in the cookie
    token_hash TEXT NOT NULL,     -- hash of the token that was used; without that token it is void
    created_at TEXT NOT NULL,     -- ISO 8601
    expires_at TEXT NOT NULL      -- ISO 8601
);
