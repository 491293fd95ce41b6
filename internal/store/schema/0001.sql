-- Schema 1. Portable DDL but for WITHOUT ROWID. Times are Unix milliseconds, booleans 0 or 1, JSON is text.
-- No default, trigger or generated number carries meaning: every value is passed in.

-- Ledger ------------------------------------------------------------------------------------------------------------

-- One row a tree. Counters are deltas applied in the transaction that admits or ends a job.
CREATE TABLE trees (
  root      TEXT   NOT NULL PRIMARY KEY,
  owner     TEXT   NOT NULL,
  version   BIGINT NOT NULL, -- grows with every change
  jobs_ever BIGINT NOT NULL,
  jobs_live BIGINT NOT NULL, -- admitted and not done
  bytes     BIGINT NOT NULL, -- kept for its jobs: specs, streams and artifacts
  ended     BIGINT NOT NULL  -- when jobs_live fell to 0; 0 before
) WITHOUT ROWID;
CREATE INDEX trees_ended ON trees(ended) WHERE ended > 0;
CREATE INDEX trees_kept ON trees(owner, ended, jobs_ever, bytes) WHERE ended > 0;

-- What changes in the life of a job. Small, because every transition rewrites the row.
CREATE TABLE jobs (
  id            TEXT   NOT NULL PRIMARY KEY,
  root          TEXT   NOT NULL REFERENCES trees(root),
  parent        TEXT   NOT NULL, -- '' for a root
  depth         BIGINT NOT NULL,
  owner         TEXT   NOT NULL,
  owner_uid     BIGINT NOT NULL,
  owner_gid     BIGINT NOT NULL,
  owner_groups  TEXT   NOT NULL, -- JSON, '' for none
  state         TEXT   NOT NULL,
  attempt       BIGINT NOT NULL,
  node          TEXT   NOT NULL,
  epoch         BIGINT NOT NULL,
  name          TEXT   NOT NULL,
  priority      BIGINT NOT NULL,
  milli_cpus    BIGINT NOT NULL,
  memory        BIGINT NOT NULL,
  bytes         BIGINT NOT NULL, -- of its row in specs
  cancel_reason TEXT   NOT NULL,
  cancel_kill   BIGINT NOT NULL,
  idem_key      TEXT   NOT NULL,
  queued        BIGINT NOT NULL,
  prepared      BIGINT NOT NULL,
  started       BIGINT NOT NULL,
  finished      BIGINT NOT NULL,
  settled       BIGINT NOT NULL,
  outcome       TEXT   NOT NULL  -- JSON, '' until done
);
CREATE INDEX jobs_owner ON jobs(owner, id);
CREATE INDEX jobs_root ON jobs(root, id);
CREATE INDEX jobs_parent ON jobs(parent, id) WHERE parent <> '';
CREATE INDEX jobs_name ON jobs(name, id) WHERE name <> '';
-- Covers the reading of the queue, whatever number of finished jobs are kept.
CREATE INDEX jobs_open ON jobs(owner, id, state, node, root, owner_uid, priority, milli_cpus, memory, attempt)
  WHERE state <> 'done';

-- What never changes. Big columns last, so that reading the first two does not touch them.
CREATE TABLE specs (
  job      TEXT NOT NULL PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
  spec     TEXT NOT NULL, -- JSON without stdin data, task and environment
  envelope TEXT NOT NULL, -- JSON
  rest     TEXT NOT NULL, -- JSON of task and environment, '' for neither
  stdin    BLOB           -- NULL for none
);

-- What an ended job returned; written once.
CREATE TABLE results (
  job    TEXT NOT NULL PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
  result TEXT NOT NULL -- JSON
);

CREATE TABLE labels (
  key   TEXT NOT NULL,
  value TEXT NOT NULL,
  job   TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  PRIMARY KEY (key, value, job)
) WITHOUT ROWID;
CREATE INDEX labels_job ON labels(job);

CREATE TABLE idempotency (
  principal TEXT NOT NULL,
  key       TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  job       TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  PRIMARY KEY (principal, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_job ON idempotency(job);

-- Queued jobs by node and uid; uid -1 is the node's total.
CREATE TABLE queues (
  node      TEXT   NOT NULL,
  owner_uid BIGINT NOT NULL,
  queued    BIGINT NOT NULL,
  bytes     BIGINT NOT NULL, -- of their specs
  PRIMARY KEY (node, owner_uid)
) WITHOUT ROWID;

-- The last event number of each owner; owner '*' counts all events.
CREATE TABLE event_counters (
  owner TEXT   NOT NULL PRIMARY KEY,
  seq   BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE events (
  total   INTEGER NOT NULL PRIMARY KEY, -- the number among all events
  owner   TEXT    NOT NULL,
  seq     BIGINT  NOT NULL, -- the number among the owner's events
  time    BIGINT  NOT NULL,
  job     TEXT    NOT NULL,
  root    TEXT    NOT NULL,
  type    TEXT    NOT NULL,
  payload TEXT    NOT NULL -- JSON, '' for none
);
CREATE UNIQUE INDEX events_owner ON events(owner, seq);

-- Node state; no reference to the ledger's tables ---------------------------------------------------------------------

CREATE TABLE node_meta (
  key   TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE slots (
  id           TEXT   NOT NULL PRIMARY KEY,
  state        TEXT   NOT NULL,
  uid          BIGINT NOT NULL,
  container_id TEXT   NOT NULL,
  job          TEXT   NOT NULL,
  attempt      BIGINT NOT NULL,
  dir          TEXT   NOT NULL,
  secret       BLOB,
  evidence     BLOB,
  error        TEXT   NOT NULL,
  tries        BIGINT NOT NULL,
  updated      BIGINT NOT NULL
);

CREATE TABLE run_journal (
  job     TEXT   NOT NULL,
  attempt BIGINT NOT NULL,
  step    TEXT   NOT NULL,
  time    BIGINT NOT NULL,
  PRIMARY KEY (job, attempt, step)
) WITHOUT ROWID;
