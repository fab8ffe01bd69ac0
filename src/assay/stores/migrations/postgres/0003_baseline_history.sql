-- The runs that baselines have pointed to, so that a slow decline can be seen.

CREATE TABLE baseline_history (  -- one run that a baseline pointed to
    name   TEXT COLLATE "C" NOT NULL REFERENCES baseline (name) ON DELETE CASCADE,  -- the baseline
    number INTEGER NOT NULL,  -- 1 for the first run of the history
    run_id TEXT COLLATE "C" NOT NULL REFERENCES run (id) ON DELETE CASCADE,  -- the run; the first and the last one cannot be deleted
    PRIMARY KEY (name, number)
);

CREATE INDEX baseline_history_run ON baseline_history (run_id);

INSERT INTO baseline_history (name, number, run_id) SELECT name, 1, run_id FROM baseline;
