// What the user chose, kept in the browser's own storage. Never sent anywhere but to this server.

export interface Settings {
  system: string;
  temperature: string; // as typed; empty: the model's own recommendation
  max_tokens: string;
  thinking: boolean;
  thinking_budget: string;
  drafting: boolean;
  draft_max: number;
  tools: string; // JSON list of tool declarations; empty: none
  key: string;
  theme: "auto" | "light" | "dark";
}

const kStored = "octet.settings";

export const kDefaults: Settings = {
  system: "",
  temperature: "",
  max_tokens: "",
  thinking: true,
  thinking_budget: "",
  drafting: true,
  draft_max: 7,
  tools: "",
  key: "",
  theme: "auto",
};

export function load_settings(): Settings {
  try {
    return { ...kDefaults, ...JSON.parse(localStorage.getItem(kStored) ?? "{}") };
  } catch {
    return kDefaults; // unreadable or forbidden storage is no reason to refuse a talk
  }
}

export function store_settings(settings: Settings): void {
  try {
    localStorage.setItem(kStored, JSON.stringify(settings));
  } catch {
    // private mode: the settings live as long as the page
  }
}

/** A number from a field; undefined when empty. Throws a sentence for anything else. */
export function number_of(field: string, text: string): number | undefined {
  if (text.trim() === "") {
    return undefined;
  }
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) {
    throw new Error(`${field} must be a number, not "${text}"`);
  }
  return value;
}

export function tools_of(text: string): unknown[] | undefined {
  if (text.trim() === "") {
    return undefined;
  }
  let tools: unknown;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    throw new Error(`Tools must be a JSON list: ${(error as Error).message}`);
  }
  if (!Array.isArray(tools)) {
    throw new Error("Tools must be a JSON list of declarations");
  }
  return tools;
}
