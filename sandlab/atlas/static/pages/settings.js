// Settings of a world or a model: a slider between the ends it allows, choices, or a text.
import { element } from "../base.js";

// What the address says about settings; an address that was cut off says nothing.
export function readSettings(text) {
  try {
    const found = JSON.parse(text || "{}");
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

// `changed(value)` is told each new value as text: of a slider while it moves, of a text when it is finished.
export function control(field, settings, changed) {
  const id = `field-${field.name}`;
  const value = settings[field.name] ?? field.value;
  const input = inputFor(field, id, value);
  if (input.type !== "range") {
    input.addEventListener("change", () => changed(input.value));
    return element(
      "div",
      { class: "field" },
      element("label", { for: id, title: field.about || null }, field.name),
      input,
    );
  }
  const written = () => (field.kind === "float" ? String(Number(Number(input.value).toPrecision(3))) : input.value);
  const shown = element("output", { for: id }, String(value));
  input.addEventListener("input", () => {
    shown.textContent = written();
    changed(written());
  });
  return element(
    "div",
    { class: "field" },
    element("label", { for: id, title: field.about || null }, field.name, shown),
    input,
  );
}

function inputFor(field, id, value) {
  const options = field.kind === "bool" ? ["True", "False"] : field.choices;
  if (options) {
    const same = (each) => each.toLowerCase() === String(value).toLowerCase();
    return element(
      "select",
      { id },
      ...options.map((each) => element("option", { value: each, selected: same(each) }, each)),
    );
  }
  const ends = endsOf(field);
  if (!ends) return element("input", { id, type: "text", value, spellcheck: "false" });
  const [low, high, step] = ends;
  return element("input", { id, type: "range", min: low, max: Math.max(low, high, Number(value)), step, value });
}

// Least, largest and step of a slider: what is allowed, and where nothing is said about it, up to four times as much.
function endsOf({ kind, value, low, high }) {
  const given = Number(value),
    most = 4 * Math.abs(given);
  if (kind === "int" && given >= (low ?? 0)) return [low ?? 0, Math.min(high ?? Infinity, Math.max(16, most)), 1];
  if (kind !== "float") return null;
  if (low != null && given >= low) return [low, high ?? Math.max(1, most), "any"];
  return high == null ? [-Math.max(2, most), Math.max(2, most), "any"] : null;
}
