-- A matrix is a group of runs, one for each of its targets.

ALTER TABLE run ADD COLUMN group_id TEXT;  -- the id that the runs of a matrix share; empty for other runs

CREATE INDEX run_group ON run (group_id) WHERE group_id IS NOT NULL;
