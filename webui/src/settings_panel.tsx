import type { ComponentChildren } from "preact";

import type { Props } from "./api";
import type { Settings } from "./settings";

interface SettingsPanelProps {
  settings: Settings;
  props: Props | null;
  on_change: (settings: Settings) => void;
}

export function SettingsPanel({ settings, props, on_change }: SettingsPanelProps) {
  const set = <K extends keyof Settings>(name: K, value: Settings[K]) => on_change({ ...settings, [name]: value });
  const drafts = props === null || props.speculative.enabled;
  const most_drafts = props?.speculative.enabled ? props.speculative.max_length : 7;
  const recommended = props?.default_generation_settings.temperature;
  return (
    <details class="settings">
      <summary>Settings</summary>
      <Field label="System message">
        <textarea rows={3} value={settings.system} onInput={(e) => set("system", e.currentTarget.value)} />
      </Field>
      <Field label="Temperature">
        <input
          inputMode="decimal"
          placeholder={recommended === undefined ? "" : `${recommended} (recommended)`}
          value={settings.temperature}
          onInput={(e) => set("temperature", e.currentTarget.value)}
        />
      </Field>
      <Field label="Longest reply, tokens">
        <input inputMode="numeric" value={settings.max_tokens} onInput={(e) => set("max_tokens", e.currentTarget.value)} />
      </Field>
      <Check label="Thinking" checked={settings.thinking} on_change={(on) => set("thinking", on)} />
      <Field label="Thinking budget, tokens">
        <input
          inputMode="numeric"
          disabled={!settings.thinking}
          value={settings.thinking_budget}
          onInput={(e) => set("thinking_budget", e.currentTarget.value)}
        />
      </Field>
      <Check label="Drafting" disabled={!drafts} checked={drafts && settings.drafting} on_change={(on) => set("drafting", on)} />
      <Field label={`Most drafts a step: ${Math.min(settings.draft_max, most_drafts)}`}>
        <input
          type="range"
          min={1}
          max={most_drafts}
          disabled={!drafts || !settings.drafting}
          value={Math.min(settings.draft_max, most_drafts)}
          onInput={(e) => set("draft_max", Number(e.currentTarget.value))}
        />
      </Field>
      <Field label="Tools (JSON list)">
        <textarea
          rows={4}
          spellcheck={false}
          placeholder='[{"type": "function", "function": {"name": "…"}}]'
          value={settings.tools}
          onInput={(e) => set("tools", e.currentTarget.value)}
        />
      </Field>
      <Field label="API key, if the server wants one">
        <input type="password" autocomplete="off" value={settings.key} onInput={(e) => set("key", e.currentTarget.value)} />
      </Field>
      <Field label="Colours">
        <select value={settings.theme} onChange={(e) => set("theme", e.currentTarget.value as Settings["theme"])}>
          <option value="auto">as the system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </Field>
    </details>
  );
}

function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

interface CheckProps {
  label: string;
  checked: boolean;
  disabled?: boolean;
  on_change: (on: boolean) => void;
}

function Check({ label, checked, disabled = false, on_change }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={(e) => on_change(e.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}
