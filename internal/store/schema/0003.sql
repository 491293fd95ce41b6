-- Schema 3. Budgets, denials and the operator's freezes. Jobs and trees of before this schema have no budget.

ALTER TABLE trees ADD COLUMN denied BIGINT NOT NULL DEFAULT 0; -- requests of its jobs that were refused
ALTER TABLE trees ADD COLUMN denied_told BIGINT NOT NULL DEFAULT 0; -- of those, the ones told as events
ALTER TABLE trees ADD COLUMN denied_second BIGINT NOT NULL DEFAULT 0; -- the second (Unix) of the last one
ALTER TABLE trees ADD COLUMN denied_in_second BIGINT NOT NULL DEFAULT 0; -- how many fell into it

-- What never changes of a job's budget. A job without a row has none.
CREATE TABLE budgets (
  job     TEXT NOT NULL PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
  inherit TEXT NOT NULL, -- share: what it spends is charged to its parent; operator: to nobody
  given   TEXT NOT NULL  -- JSON: the limits by dimension, and which of them were cut to what was left
) WITHOUT ROWID;

-- What a job may spend and has spent, by dimension. A dimension without a row is unlimited and unspent.
CREATE TABLE pots (
  job     TEXT   NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  dim     TEXT   NOT NULL,
  bound   BIGINT,          -- the most it may spend; NULL for no limit of its own
  spent   BIGINT NOT NULL, -- by its ended children with all below them, and by itself once it has ended
  granted BIGINT NOT NULL, -- held by its children that have not ended
  held    BIGINT NOT NULL, -- of its bound, what is taken out of its parent's pot until it ends
  PRIMARY KEY (job, dim)
) WITHOUT ROWID;

-- What an operator stopped.
CREATE TABLE freezes (
  scope     TEXT   NOT NULL, -- all, profile or tree
  name      TEXT   NOT NULL, -- of the profile, the root of the tree, '' for all
  frozen_by TEXT   NOT NULL,
  since     BIGINT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;
