// Templates as the npm engine @huggingface/jinja renders them: lines {template, variables?} from standard
// input, lines {template, out} or {template, error} to standard output.
//   node jinja_render.mjs VARIABLES.json < cases.jsonl
// VARIABLES.json serves the cases that bring none of their own.
import fs from "node:fs";
import { Template } from "@huggingface/jinja";

const shared = process.argv[2] ? JSON.parse(fs.readFileSync(process.argv[2], "utf8")) : {};
for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { template, variables } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ template, out: new Template(template).render(variables ?? shared) }));
  } catch (error) {
    console.log(JSON.stringify({ template, error: String(error.message) }));
  }
}
