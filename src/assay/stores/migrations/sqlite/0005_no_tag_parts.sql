-- Stores of the schemas 3 and 4 have an index of tags. Its triggers need a function that is gone.

DROP TRIGGER IF EXISTS tag_set_made;

DROP TRIGGER IF EXISTS tag_set_gone;

DROP TABLE IF EXISTS tag_part;

DROP INDEX IF EXISTS tag_set_total;
