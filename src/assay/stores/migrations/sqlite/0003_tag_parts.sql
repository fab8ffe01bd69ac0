-- A tag is found by its parts, without a look at all tags. `tag_parts` is a function of ours.

-- The beginnings that are indexed too are those of one and of two characters.
CREATE VIRTUAL TABLE tag_part USING fts5(  -- which sets of tags have a part; kept by triggers
    parts,  -- every three characters of a tag that follow each other, in digits
    content = '', columnsize = 0, detail = none, tokenize = 'ascii', prefix = '8 16'
);

-- What is found is counted without a look at the tags themselves.
CREATE INDEX tag_set_total ON tag_set (number, total);

CREATE TRIGGER tag_set_made AFTER INSERT ON tag_set BEGIN
    INSERT INTO tag_part (rowid, parts) VALUES (new.number, tag_parts(new.folded));
END;

CREATE TRIGGER tag_set_gone AFTER DELETE ON tag_set BEGIN
    INSERT INTO tag_part (tag_part, rowid, parts)
    VALUES ('delete', old.number, tag_parts(old.folded));
END;

INSERT INTO tag_part (rowid, parts) SELECT number, tag_parts(folded) FROM tag_set;
