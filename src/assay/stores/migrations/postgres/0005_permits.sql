-- Rate limits that hold for the workers of many machines together.

CREATE TABLE permit (  -- when workers of a cluster may ask a target next
    target TEXT COLLATE "C" PRIMARY KEY,  -- hash of the target and its settings; a second row is for its tokens
    next_at DOUBLE PRECISION NOT NULL  -- time of the next free request, in seconds since 1970 by the clock of the server
);
