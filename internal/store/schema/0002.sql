-- Schema 2. Events get a number within their tree: a job reads those of itself and its descendants, and the numbers
-- must tell it nothing of other trees. Events of before this schema have 0, and no job reads them.

ALTER TABLE trees ADD COLUMN events BIGINT NOT NULL DEFAULT 0; -- the last number given to an event of the tree
ALTER TABLE events ADD COLUMN tree_seq BIGINT NOT NULL DEFAULT 0;
CREATE INDEX events_tree ON events(root, tree_seq);
