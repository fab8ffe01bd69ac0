-- Everything that was asked of a target, what it answered, and how that was graded.

CREATE TABLE run (  -- one `assay run`, stored when it starts
    id TEXT COLLATE "C" PRIMARY KEY,  -- UUID of version 7: a later run has a greater id
    started_at TEXT NOT NULL,  -- ISO 8601
    status TEXT NOT NULL,  -- running, finished or interrupted; a killed run stays running
    target TEXT NOT NULL,  -- name of the target that was asked
    plan TEXT NOT NULL,  -- JSON object: what a resumed run must share, paths and options
    options TEXT NOT NULL,  -- JSON object: the options of the run
    environment TEXT NOT NULL,  -- JSON object: git revision, versions, settings without secrets
    suites TEXT NOT NULL,  -- JSON array: one header for each eval file, in the order of the files
    finished_at TEXT,  -- ISO 8601; empty until the run has ended
    summary TEXT  -- JSON object: counts and statistics; empty until it has ended
);

CREATE TABLE trial (  -- one case asked and graded once; never changed once it is final
    run_id TEXT COLLATE "C" NOT NULL REFERENCES run (id) ON DELETE CASCADE,  -- the run it belongs to
    position BIGINT NOT NULL,  -- the place of the case in its suite from 0, plus 2^28 times the number of the suite
    repeat BIGINT NOT NULL,  -- which repeat of the case, from 0
    suite TEXT NOT NULL,  -- the eval file of the case
    case_id TEXT NOT NULL,  -- id of the case in its file
    outcome TEXT NOT NULL,  -- passed, failed, errored or skipped
    score DOUBLE PRECISION,  -- from 0 to 1; empty when the case could not be judged
    duration_ms DOUBLE PRECISION NOT NULL,  -- how long the target took
    cost_usd DOUBLE PRECISION,  -- what the target cost; empty when that is not known
    judge_cost_usd DOUBLE PRECISION,  -- what its judges cost; empty when that is not known
    comparability TEXT NOT NULL,  -- key of the case's content; trials with the same key can be compared
    critical BOOLEAN NOT NULL,  -- true if this case alone can fail the gate
    cluster TEXT,  -- cases of one cluster are not independent; empty for most
    min_pass_rate DOUBLE PRECISION NOT NULL,  -- the share of repeats that must pass for the case to pass
    skipped_assertions BIGINT NOT NULL,  -- assertions that had no seed or snapshot data
    confirms BOOLEAN NOT NULL,  -- true if it is a re-ask of a lost case
    final BOOLEAN NOT NULL,  -- false if the target was not asked or not reached; a resumed run asks it
    result BYTEA NOT NULL,  -- JSON object: the case's entry in the result file, without the answer
    observation BYTEA NOT NULL,  -- JSON object: what the target did
    PRIMARY KEY (run_id, position, repeat)
);

CREATE TABLE baseline (  -- a run that others are compared with, under a name
    name TEXT COLLATE "C" PRIMARY KEY,  -- the name of the baseline
    run_id TEXT COLLATE "C" NOT NULL REFERENCES run (id)  -- the run; it cannot be deleted while it is a baseline
);

CREATE INDEX baseline_run ON baseline (run_id);

CREATE TABLE cache (  -- replies by the content of their question; versions of test cases that runs pinned
    key TEXT COLLATE "C" PRIMARY KEY,  -- hash of the question
    value BYTEA NOT NULL  -- JSON object: the reply
);
