// read_gguf.mjs FILE: prints metadata and tensor infos of a GGUF file as JSON, as @huggingface/gguf reads them.
// 64-bit numbers are printed as decimal strings.
import { gguf } from "@huggingface/gguf";

const { metadata, tensorInfos } = await gguf(process.argv[2], { allowLocalFile: true });
const plain = (_, value) => (typeof value === "bigint" ? value.toString() : value);
console.log(JSON.stringify({ metadata, tensorInfos }, plain));
