-- Job store of weir, version 4. Times are milliseconds since 1970; the view `jobs` has them as dates.
--
--     select * from jobs where state = 'retrying';
--     select * from tally;
--
-- Changes go through `weir send retry`, `edit` or `purge`, which keep tally and history correct.

CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

-- State of each job. Rows are small, since they change often; the request is in `request`.
CREATE TABLE job (
    number INTEGER PRIMARY KEY,                   -- in the order of submission
    id TEXT,                                      -- job ID, unique
    state TEXT NOT NULL                           -- OR, not IN here and below: SQLite would build a table for IN at each change
        CHECK (state = 'queued' OR state = 'leased' OR state = 'done' OR state = 'retrying'
            OR state = 'dead_lettered' OR state = 'expired'),
    reason TEXT NOT NULL,                         -- cause of the last change of state
    changed_ms INTEGER NOT NULL,                  -- time of it
    attempts INTEGER NOT NULL,                    -- number of attempts
    maybe_sent INTEGER NOT NULL,                  -- 1: may also have been sent before a crash
    code INTEGER,                                 -- status of the last response
    last_key TEXT,                                -- name of the API key of the last attempt
    sent_ms INTEGER,                              -- time of the last attempt
    retry_at_ms INTEGER,                          -- time of the next attempt of a retrying job
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    priority INTEGER NOT NULL,                    -- higher is sent first
    rank INTEGER NOT NULL,                        -- then lower is sent first
    weight INTEGER NOT NULL,                      -- weight in a weight limit
    pinned_key TEXT NOT NULL,                     -- name of the only API key that may send it; '' for any
    bytes INTEGER NOT NULL,                       -- size in the queue
    lane TEXT NOT NULL DEFAULT ''                 -- queue of its pinned key and host: KEY@HOST
);
CREATE UNIQUE INDEX job_id ON job (id) WHERE id IS NOT NULL;
CREATE INDEX job_ready ON job (lane, priority DESC, rank) WHERE state = 'queued';
CREATE INDEX job_leased ON job (state) WHERE state = 'leased';
CREATE INDEX job_due ON job (retry_at_ms) WHERE state = 'retrying';
CREATE INDEX job_ends ON job (expires_ms) WHERE expires_ms IS NOT NULL AND (state = 'queued' OR state = 'retrying');

CREATE TABLE request (
    number INTEGER PRIMARY KEY,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers TEXT NOT NULL,                        -- [["name","value"],...]
    idempotency_key TEXT,
    body,                                         -- TEXT if valid UTF-8, else BLOB
    templates TEXT NOT NULL                       -- parts with fields to fill in, as JSON
);

-- Last response of a job, unless it is in a results file.
CREATE TABLE response (
    number INTEGER PRIMARY KEY,
    headers TEXT NOT NULL,
    body
);

-- Changes of state besides queued, leased, done; the last 20 of each job.
CREATE TABLE history (
    number INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    last_key TEXT,                                -- the attempt that caused the change, if one did
    sent_ms INTEGER,
    code INTEGER,
    PRIMARY KEY (number, nth)
) WITHOUT ROWID;

-- State of API keys: times of their last sends, highest nonces.
CREATE TABLE key (name TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;

-- Jobs and bytes in each state, updated with each change, since counting a million rows takes seconds.
CREATE TABLE tally (state TEXT PRIMARY KEY, jobs INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO tally VALUES ('queued', 0, 0), ('leased', 0, 0), ('done', 0, 0), ('retrying', 0, 0),
    ('dead_lettered', 0, 0), ('expired', 0, 0);

CREATE VIEW jobs AS
SELECT number, id, state, reason, strftime('%FT%H:%M:%fZ', changed_ms / 1000.0, 'unixepoch') AS changed, method, url,
    attempts, maybe_sent, code, last_key, strftime('%FT%H:%M:%fZ', sent_ms / 1000.0, 'unixepoch') AS sent,
    strftime('%FT%H:%M:%fZ', retry_at_ms / 1000.0, 'unixepoch') AS retry_at,
    strftime('%FT%H:%M:%fZ', created_ms / 1000.0, 'unixepoch') AS created,
    strftime('%FT%H:%M:%fZ', expires_ms / 1000.0, 'unixepoch') AS expires,
    priority, weight, pinned_key, bytes
FROM job JOIN request USING (number);
