-- A store of weir's, version 2. Times are milliseconds since 1970; the view `jobs` shows them as dates.
--
--     select * from jobs where state = 'dead';
--     select * from tally;
--
-- To change something, call `weir send retry`, `edit` or `purge`: they keep the tally and the history right.

CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

-- Where each job is. Small rows, since they change; what is sent stands in `request`.
CREATE TABLE job (
    number INTEGER PRIMARY KEY,                   -- in the order of submission
    id TEXT,                                      -- the caller's name for it
    state TEXT NOT NULL                           -- no IN here or below: SQLite would make a table of it for each change
        CHECK (state = 'queued' OR state = 'leased' OR state = 'done' OR state = 'dead' OR state = 'graveyard'
            OR state = 'expired'),
    reason TEXT NOT NULL,                         -- why it is there
    changed_ms INTEGER NOT NULL,                  -- and since when
    tries INTEGER NOT NULL,                       -- how often it was sent
    maybe_sent INTEGER NOT NULL,                  -- 1: a process ended before it noted what came of a send
    code INTEGER,                                 -- the status of the last answer
    key TEXT,                                     -- the last key
    sent_ms INTEGER,                              -- the last send
    retry_ms INTEGER,                             -- when a dead letter is tried again
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    priority INTEGER NOT NULL,                    -- higher ones go first
    rank INTEGER NOT NULL,                        -- then lower ones of these
    weight INTEGER NOT NULL,                      -- what it takes of a limit
    key_hint TEXT NOT NULL,                       -- the one key that may send it; '' for any
    bytes INTEGER NOT NULL,                       -- its size in the queue
    lane TEXT NOT NULL DEFAULT ''                 -- the line it stands in: KEY@HOST
);
CREATE UNIQUE INDEX job_id ON job (id) WHERE id IS NOT NULL;
CREATE INDEX job_ready ON job (lane, priority DESC, rank) WHERE state = 'queued';
CREATE INDEX job_leased ON job (state) WHERE state = 'leased';
CREATE INDEX job_due ON job (retry_ms) WHERE state = 'dead';
CREATE INDEX job_ends ON job (expires_ms) WHERE expires_ms IS NOT NULL AND (state = 'queued' OR state = 'dead');

CREATE TABLE request (
    number INTEGER PRIMARY KEY,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers TEXT NOT NULL,                        -- [["name","value"],...]
    idempotency_key TEXT,
    body                                          -- text if it is text
);

CREATE TABLE answer (
    number INTEGER PRIMARY KEY,
    headers TEXT NOT NULL,
    body
);

-- Changes that were not the ordinary course from queued through leased to done; the last 20 of each job.
CREATE TABLE history (
    number INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    key TEXT,                                     -- what was sent before it, if that was it
    sent_ms INTEGER,
    code INTEGER,
    PRIMARY KEY (number, nth)
) WITHOUT ROWID;

-- What a sender keeps of its keys: the times of their last sends, their highest nonces.
CREATE TABLE key (name TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;

-- How many jobs there are in each state. Kept with each change, for to count a million takes a while.
CREATE TABLE tally (state TEXT PRIMARY KEY, jobs INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO tally VALUES ('queued', 0, 0), ('leased', 0, 0), ('done', 0, 0), ('dead', 0, 0), ('graveyard', 0, 0),
    ('expired', 0, 0);

CREATE VIEW jobs AS
SELECT number, id, state, reason, strftime('%FT%H:%M:%fZ', changed_ms / 1000.0, 'unixepoch') AS changed, method, url,
    tries, maybe_sent, code, key, strftime('%FT%H:%M:%fZ', sent_ms / 1000.0, 'unixepoch') AS sent,
    strftime('%FT%H:%M:%fZ', retry_ms / 1000.0, 'unixepoch') AS retry,
    strftime('%FT%H:%M:%fZ', created_ms / 1000.0, 'unixepoch') AS created,
    strftime('%FT%H:%M:%fZ', expires_ms / 1000.0, 'unixepoch') AS expires,
    priority, weight, key_hint, bytes
FROM job JOIN request USING (number);
