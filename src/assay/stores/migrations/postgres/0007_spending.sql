-- Budgets that hold for the workers of many machines together.

CREATE TABLE spending (  -- what the workers of a cluster have spent of the budget of a run
    run_id TEXT COLLATE "C" PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,  -- the run
    usd DOUBLE PRECISION NOT NULL  -- cost of all answers and judgements, of those in progress when a worker was lost too
);
