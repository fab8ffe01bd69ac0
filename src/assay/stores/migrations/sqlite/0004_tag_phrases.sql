-- The index knows where a part is, so that it alone tells whether a tag has a longer text: a phrase.

DROP TRIGGER tag_set_made;
DROP TRIGGER tag_set_gone;
DROP TABLE tag_part;
DROP INDEX tag_set_total;

-- The beginnings that are indexed too are those of one and of two characters.
CREATE VIRTUAL TABLE tag_part USING fts5(  -- where sets of tags have a part; kept by triggers
    parts,  -- every three characters of a tag, in digits, in three rows: from its first, its second and its third character on
    content = '', columnsize = 0, tokenize = 'ascii', prefix = '8 16'
);

-- A set that is not here has one test case: what is found is counted with hardly a look at the sets.
CREATE INDEX tag_set_shared ON tag_set (number, total) WHERE total > 1;

CREATE TRIGGER tag_set_made AFTER INSERT ON tag_set BEGIN
    INSERT INTO tag_part (rowid, parts) VALUES (new.number, tag_parts(new.folded));
END;

CREATE TRIGGER tag_set_gone AFTER DELETE ON tag_set BEGIN
    INSERT INTO tag_part (tag_part, rowid, parts)
    VALUES ('delete', old.number, tag_parts(old.folded));
END;

INSERT INTO tag_part (rowid, parts) SELECT number, tag_parts(folded) FROM tag_set;
