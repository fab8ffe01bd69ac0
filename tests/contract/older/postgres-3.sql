CREATE TABLE public.assay_schema (
    version bigint NOT NULL
);
CREATE TABLE public.baseline (
    name text NOT NULL COLLATE pg_catalog."C",
    run_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.baseline_history (
    name text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.cache (
    key text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);
CREATE TABLE public.run (
    id text NOT NULL COLLATE pg_catalog."C",
    started_at text NOT NULL,
    status text NOT NULL,
    target text NOT NULL,
    plan text NOT NULL,
    options text NOT NULL,
    environment text NOT NULL,
    suites text NOT NULL,
    finished_at text,
    summary text
);
CREATE TABLE public.tag_set (
    number bigint NOT NULL,
    folded bytea NOT NULL,
    total bigint NOT NULL
);
ALTER TABLE public.tag_set ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.tag_set_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.test_case (
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at text NOT NULL,
    deleted_at text,
    tag_set bigint
);
CREATE TABLE public.test_case_count (
    total bigint NOT NULL
);
ALTER TABLE public.test_case ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.test_case_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.test_case_version (
    number bigint NOT NULL,
    version bigint NOT NULL,
    input text NOT NULL,
    expected_output text NOT NULL,
    description text,
    tags text NOT NULL,
    modified_at text NOT NULL
);
CREATE TABLE public.trial (
    run_id text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    repeat bigint NOT NULL,
    suite text NOT NULL,
    case_id text NOT NULL,
    outcome text NOT NULL,
    score double precision,
    duration_ms double precision NOT NULL,
    cost_usd double precision,
    judge_cost_usd double precision,
    comparability text NOT NULL,
    critical boolean NOT NULL,
    cluster text,
    min_pass_rate double precision NOT NULL,
    skipped_assertions bigint NOT NULL,
    confirms boolean NOT NULL,
    final boolean NOT NULL,
    result bytea NOT NULL,
    observation bytea NOT NULL
);
INSERT INTO public.assay_schema VALUES (3);
INSERT INTO public.baseline VALUES ('main', 'run-1');
INSERT INTO public.baseline_history VALUES ('main', 1, 'run-1');
INSERT INTO public.cache VALUES ('key', '\x7b227265706c79223a317d');
INSERT INTO public.run VALUES ('run-1', '2026-01-31T12:00:00Z', 'running', 'echo', '{}', '{}', '{}', '[{"name":"weather","file":"evals/weather.eval.yaml"}]', NULL, NULL);
INSERT INTO public.tag_set OVERRIDING SYSTEM VALUE VALUES (1, '\x67656fff7374c3a4647465', 1);
INSERT INTO public.tag_set OVERRIDING SYSTEM VALUE VALUES (4, '\x6d61746873', 1);
INSERT INTO public.tag_set OVERRIDING SYSTEM VALUE VALUES (5, '\x', 1);
INSERT INTO public.tag_set OVERRIDING SYSTEM VALUE VALUES (6, '\x686973746f7279', 1);
INSERT INTO public.test_case OVERRIDING SYSTEM VALUE VALUES (1, '7628e4a8-ccc9-4acf-947a-e65b7ead172f', 1, '2026-01-31T12:00:00.000000Z', NULL, 1);
INSERT INTO public.test_case OVERRIDING SYSTEM VALUE VALUES (4, 'f1a16fde-4175-475a-ace5-d6c46017e4cf', 1, '2026-01-31T12:00:00.000000Z', NULL, 4);
INSERT INTO public.test_case OVERRIDING SYSTEM VALUE VALUES (5, 'f87fc7d6-8308-43dd-b071-57f729ea2660', 1, '2026-01-31T12:00:00.000000Z', NULL, 5);
INSERT INTO public.test_case OVERRIDING SYSTEM VALUE VALUES (2, 'e0e59080-23ef-4758-b146-686dae4b9385', 2, '2026-01-31T12:00:00.000000Z', NULL, 6);
INSERT INTO public.test_case OVERRIDING SYSTEM VALUE VALUES (3, 'e7aa3529-5e42-4661-a5c0-d495ad2a28a8', 1, '2026-01-31T12:00:00.000000Z', '2026-01-31T12:00:00.000000Z', NULL);
INSERT INTO public.test_case_count VALUES (4);
INSERT INTO public.test_case_version VALUES (1, 1, 'Paris?', '4', NULL, '["Geo","Städte"]', '2026-01-31T12:00:00.000000Z');
INSERT INTO public.test_case_version VALUES (2, 1, 'Rome?', '4', NULL, '["geography"]', '2026-01-31T12:00:00.000000Z');
INSERT INTO public.test_case_version VALUES (3, 1, 'Oslo?', '4', NULL, '["geo"]', '2026-01-31T12:00:00.000000Z');
INSERT INTO public.test_case_version VALUES (4, 1, '2+2?', '4', NULL, '["Maths"]', '2026-01-31T12:00:00.000000Z');
INSERT INTO public.test_case_version VALUES (5, 1, 'untagged', '4', NULL, '[]', '2026-01-31T12:00:00.000000Z');
INSERT INTO public.test_case_version VALUES (2, 2, 'Rome?', '4', NULL, '["history"]', '2026-01-31T12:00:00.000001Z');
INSERT INTO public.trial VALUES ('run-1', 0, 0, 'evals/weather.eval.yaml', 'case-0', 'passed', 1, 12.5, NULL, NULL, 'c0ffee', false, NULL, 1, 0, false, true, '\x7b22706173736564223a747275657d', '\x7b22726573706f6e7365223a2232332e3520c2b043227d');
INSERT INTO public.trial VALUES ('run-1', 1, 0, 'evals/weather.eval.yaml', 'case-1', 'failed', 0, 12.5, NULL, NULL, 'c0ffee', false, NULL, 1, 0, false, true, '\x7b22706173736564223a747275657d', '\x7b22726573706f6e7365223a2232332e3520c2b043227d');
SELECT pg_catalog.setval('public.tag_set_number_seq', 6, true);
SELECT pg_catalog.setval('public.test_case_number_seq', 5, true);
ALTER TABLE ONLY public.baseline_history
    ADD CONSTRAINT baseline_history_pkey PRIMARY KEY (name, number);
ALTER TABLE ONLY public.baseline
    ADD CONSTRAINT baseline_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.cache
    ADD CONSTRAINT cache_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tag_set
    ADD CONSTRAINT tag_set_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.test_case
    ADD CONSTRAINT test_case_id_key UNIQUE (id);
ALTER TABLE ONLY public.test_case
    ADD CONSTRAINT test_case_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.test_case_version
    ADD CONSTRAINT test_case_version_pkey PRIMARY KEY (number, version);
ALTER TABLE ONLY public.trial
    ADD CONSTRAINT trial_pkey PRIMARY KEY (run_id, "position", repeat);
CREATE INDEX baseline_history_run ON public.baseline_history USING btree (run_id);
CREATE INDEX baseline_run ON public.baseline USING btree (run_id);
CREATE INDEX tag_set_folded ON public.tag_set USING hash (folded);
CREATE INDEX test_case_live ON public.test_case USING btree (number) WHERE (deleted_at IS NULL);
CREATE INDEX test_case_tags ON public.test_case USING btree (tag_set, number);
ALTER TABLE ONLY public.baseline_history
    ADD CONSTRAINT baseline_history_name_fkey FOREIGN KEY (name) REFERENCES public.baseline(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.baseline_history
    ADD CONSTRAINT baseline_history_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.baseline
    ADD CONSTRAINT baseline_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id);
ALTER TABLE ONLY public.test_case
    ADD CONSTRAINT test_case_tag_set_fkey FOREIGN KEY (tag_set) REFERENCES public.tag_set(number);
ALTER TABLE ONLY public.test_case_version
    ADD CONSTRAINT test_case_version_number_fkey FOREIGN KEY (number) REFERENCES public.test_case(number);
ALTER TABLE ONLY public.trial
    ADD CONSTRAINT trial_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
