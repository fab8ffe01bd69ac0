-- Budgets that hold for the workers of many machines together.

CREATE TABLE spending (  -- what the workers of a cluster have spent of a budget
    budget TEXT COLLATE "C" PRIMARY KEY,  -- id of the run, or of the group of runs that share the budget
    usd DOUBLE PRECISION NOT NULL  -- cost of all answers and judgements, also of those that were lost with a worker
);
