-- Append-only. No PRIMARY KEY, UNIQUE or index: each costs ingest a third and more, and zone maps over arrival
-- order find what a sidecar holds fast enough.

-- One row per span or log record received. What a dialect reads often is a column of its own; what was sent is
-- in attributes, resource, scope and rest, so that a row gives back exactly what came. Ids are their bytes: hex
-- text costs the same time and 64 bytes more a row (measured); lower(hex(trace_id)) shows it.
CREATE TABLE spans (
    tenant         VARCHAR   NOT NULL,
    trace_id       BLOB      NOT NULL,
    span_id        BLOB      NOT NULL,
    parent_span_id BLOB,
    source         VARCHAR   NOT NULL, -- span, log, or tool for a span stored by log_trace
    lane           UTINYINT  NOT NULL, -- 0 traces, 1 logs, 2 metrics
    seq            UBIGINT   NOT NULL,
    ordinal        UINTEGER  NOT NULL,
    received       TIMESTAMP NOT NULL,
    name           VARCHAR   NOT NULL,
    kind           VARCHAR,
    start_time     TIMESTAMP NOT NULL,
    end_time       TIMESTAMP,          -- absent for a span that has not ended and for a log record
    nanos          UINTEGER  NOT NULL, -- what microseconds cut off: start % 1000 + (end % 1000 << 10) + (received % 1000 << 20)
    status         VARCHAR,
    role           VARCHAR,
    agent_name     VARCHAR,
    model          VARCHAR,
    provider       VARCHAR,
    tool_name      VARCHAR,
    input_tokens   UBIGINT,
    output_tokens  UBIGINT,
    cost_usd       DOUBLE,
    session_id     VARCHAR,
    content_hash   UBIGINT   NOT NULL,
    resource       VARCHAR   NOT NULL,
    scope          VARCHAR   NOT NULL,
    attributes     VARCHAR   NOT NULL USING COMPRESSION zstd,
    rest           VARCHAR   NOT NULL USING COMPRESSION zstd,
    long_id        UBIGINT,            -- see pieces
    long           VARCHAR
);

-- One row per version of a trace; the highest version is the trace.
CREATE TABLE traces (
    tenant            VARCHAR   NOT NULL,
    trace_id          BLOB      NOT NULL,
    version           UINTEGER  NOT NULL,
    source            VARCHAR   NOT NULL,
    agent_name        VARCHAR   NOT NULL,
    framework         VARCHAR,
    timestamp         TIMESTAMP NOT NULL,
    nanos             USMALLINT NOT NULL,
    latency_ms        DOUBLE,
    prompt_tokens     UBIGINT,
    completion_tokens UBIGINT,
    total_tokens      UBIGINT,
    cost_usd          DOUBLE,
    cost_source       VARCHAR,
    session_id        VARCHAR,
    user_id           VARCHAR,
    model             VARCHAR,
    provider          VARCHAR,
    environment       VARCHAR,
    service_version   VARCHAR,
    partial           BOOLEAN   NOT NULL,
    conflicting_spans BOOLEAN   NOT NULL,
    failed            BOOLEAN   NOT NULL, -- a span, a run or a tool call ended in an error
    span_count        UINTEGER  NOT NULL,
    error_count       UINTEGER  NOT NULL,
    seen_through      UBIGINT   NOT NULL,
    lane              UTINYINT,           -- the journal record of a trace stored by log_trace
    seq               UBIGINT,
    ordinal           UINTEGER,
    stored_at         TIMESTAMP NOT NULL,
    input             VARCHAR   USING COMPRESSION zstd,
    output            VARCHAR   USING COMPRESSION zstd,
    tool_calls        VARCHAR   USING COMPRESSION zstd,
    metadata          VARCHAR   NOT NULL USING COMPRESSION zstd,
    runs              VARCHAR   NOT NULL USING COMPRESSION zstd,
    body              VARCHAR   NOT NULL USING COMPRESSION zstd, -- every other field
    long_id           UBIGINT,            -- see pieces
    long              VARCHAR
);

-- One row per judging.
CREATE TABLE evaluations (
    id            VARCHAR   NOT NULL,
    tenant        VARCHAR   NOT NULL,
    trace_id      BLOB,
    trace_version UINTEGER,
    eval_type     VARCHAR   NOT NULL,
    score         DOUBLE,             -- none, like passed, where a model ruled on nothing
    passed        BOOLEAN,
    state         VARCHAR   NOT NULL,
    failed_rules  VARCHAR   NOT NULL, -- a JSON array of names
    created_at    TIMESTAMP NOT NULL,
    nanos         USMALLINT NOT NULL,
    inline        BOOLEAN   NOT NULL,
    seen_through  UBIGINT   NOT NULL,
    lane          UTINYINT,           -- the journal record of an evaluation made by a tool
    seq           UBIGINT,
    ordinal       UINTEGER,
    erased        BOOLEAN   NOT NULL,
    output_text   VARCHAR   USING COMPRESSION zstd,
    expected_text VARCHAR   USING COMPRESSION zstd,
    body          VARCHAR   NOT NULL USING COMPRESSION zstd, -- every other field
    long_id       UBIGINT,            -- see pieces
    long          VARCHAR
);

-- When something was deleted of which bytes may still be in this file; empty once it was written anew.
CREATE TABLE erasures (
    asked TIMESTAMP NOT NULL
);

-- What rules say again and again: the fields of a rule's result that do not depend on the output it judged. A result in
-- the body of an evaluation names its shape and has the other fields.
CREATE TABLE shapes (
    id   UINTEGER NOT NULL,
    body VARCHAR  NOT NULL
);

-- Values too long for their row. The engine unpacks 2,048 neighbouring rows of a column together, so no row above
-- holds more than 12 KiB of text: its longest values stand here, and in their place its column keeps the beginning of
-- a text, or null where it is JSON. `long` says which columns those are, each with its length in bytes and characters.
CREATE TABLE pieces (
    owner   UBIGINT  NOT NULL, -- long_id of the row
    field   VARCHAR  NOT NULL, -- the column
    ordinal UINTEGER NOT NULL, -- from 0
    text    VARCHAR  NOT NULL USING COMPRESSION zstd
);

-- How far the journal is stored and settled. Every value only rises, so the largest is the newest.
CREATE TABLE positions (
    stored_traces   UBIGINT NOT NULL,
    stored_logs     UBIGINT NOT NULL,
    stored_metrics  UBIGINT NOT NULL,
    settled_traces  UBIGINT NOT NULL,
    settled_logs    UBIGINT NOT NULL,
    settled_metrics UBIGINT NOT NULL
);
