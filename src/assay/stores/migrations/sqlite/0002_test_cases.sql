-- Test cases that people keep and edit, with every version that there was of them.

CREATE TABLE tag_set (  -- tags that test cases have in common; a tag is searched here, once for all of them
    number INTEGER PRIMARY KEY,  -- number that test cases refer to
    folded BLOB NOT NULL,        -- the tags without case, sorted, in UTF-8, with the byte FF between them
    total  INTEGER NOT NULL      -- how many test cases have exactly these tags
);

CREATE UNIQUE INDEX tag_set_folded ON tag_set (folded);

CREATE TABLE test_case (  -- a test case; one that was deleted is hidden and stays
    number     INTEGER PRIMARY KEY,                  -- a later test case has a greater one
    id         TEXT NOT NULL UNIQUE,                 -- UUID; never given to another
    version    INTEGER NOT NULL,                     -- number of the newest version
    created_at TEXT NOT NULL,                        -- ISO 8601
    deleted_at TEXT,                                 -- ISO 8601; empty unless it was deleted
    tag_set    INTEGER REFERENCES tag_set (number)   -- its tags; empty when it was deleted
);

CREATE INDEX test_case_live ON test_case (number) WHERE deleted_at IS NULL;

CREATE INDEX test_case_tags ON test_case (tag_set, number);

CREATE TABLE test_case_version (  -- a test case as it was from one write to the next; never changed
    number          INTEGER NOT NULL REFERENCES test_case (number),  -- number of the test case
    version         INTEGER NOT NULL,  -- from 1
    input           TEXT NOT NULL,     -- what is asked
    expected_output TEXT NOT NULL,     -- what the answer should be
    description     TEXT,              -- a note for people
    tags            TEXT NOT NULL,     -- JSON array of texts
    modified_at     TEXT NOT NULL,     -- ISO 8601; later than the version before
    PRIMARY KEY (number, version)
);

CREATE TABLE test_case_count (  -- one row with the number of test cases, which saves counting them
    total INTEGER NOT NULL  -- how many test cases there are that were not deleted
);

INSERT INTO test_case_count (total) VALUES (0);
