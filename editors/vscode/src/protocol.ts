/** What the server answers, as far as it is used here. See docs/protocol.md. */

export interface Hit {
  /** Where it was found, from servers that ask several. */
  memory?: string;
  rank: number;
  session_id: string;
  turn_uuid: string;
  ts: string | null;
  age_s?: number | null;
  harness: string;
  workdir: string;
  cwd: string;
  title: string;
  role: string;
  block_type: string;
  tool_name: string | null;
  text: string;
  neighbors: Neighbor[];
  get: string;
  /** Other sessions that hold this very passage, and how often it stands again in its own. */
  also_in?: string[];
  repeats?: number;
  /** Where its subject came up again later. */
  revisited?: Revisit | null;
}

export interface Revisit {
  how: string;
  session_id: string;
  turn_uuid: string;
  ts: string;
  path: string;
}

export interface Neighbor {
  session_id: string;
  turn_uuid: string;
  role: string;
  block_type: string;
  text: string;
}

export interface RecallAnswer {
  memory: string;
  note: string;
  legs: Record<string, string>;
  hits: Hit[];
  /** Whether the passages are only what is nearest, and perhaps no answer. */
  weak?: boolean;
}

export interface Session {
  session_id: string;
  harness: string;
  cwd: string;
  workdir?: string;
  title: string;
  started_us: number | null;
  ended_us: number | null;
  turns: number;
  subagent?: boolean;
}

export interface SessionsAnswer {
  total: number;
  sessions: Session[];
}

export interface RelatedSession extends Session {
  relation: string;
  last_us: number | null;
  passage: { text: string; turn_uuid: string } | null;
}

export interface RelatedAnswer {
  path: string;
  total: number;
  sessions: RelatedSession[];
}

export interface StatusAnswer {
  memory: string;
  state: string;
  sessions: number;
  chunks: number;
  words_only: number;
  pending_sources: number;
  problems: number;
  note: string;
  harnesses?: Record<string, number>;
}

export interface BlameAnswer {
  lines: { start: number; end: number; confidence: string; session_id: string; turn_uuid: string; ts: string; harness: string }[];
}

export interface GetAnswer {
  found: boolean;
  session_id: string;
  harness: string;
  cwd: string;
  /** What its calls touched; a server of before does not tell. */
  files?: string[];
  /** How it is gone on with; nothing where it cannot. */
  reopen?: string[];
}

export interface AskAnswer {
  answer: string;
  prompt: string;
  agent: string;
  sources: { rank: number; session_id: string; turn_uuid: string; ts: string | null; harness: string; cited: boolean }[];
  note: string;
  installed?: string[];
}

export interface DocumentAnswer {
  uri: string;
  line: number;
  text: string;
}
