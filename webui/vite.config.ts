import { defineConfig, loadEnv, type Plugin } from "vite";

/** Puts script and style into the page itself: the server then has one asset, and no path can be wrong. */
function one_file(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset" || typeof page.source !== "string") {
        throw new Error("there is no index.html in the build");
      }
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") {
          const code = part.code.replaceAll("</script", "<\\/script");
          page.source = page.source.replace(/<script[^>]*src="[^"]*"[^>]*><\/script>/, "");
          page.source = page.source.replace("</body>", () => `<script type="module">${code}</script></body>`);
          delete bundle[name];
        } else if (name.endsWith(".css")) {
          const style = String(part.source);
          page.source = page.source.replace(/<link[^>]*rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`);
          delete bundle[name];
        }
      }
    },
  };
}

export default defineConfig(({ mode }) => {
  const server = loadEnv(mode, ".", "VITE_").VITE_OCTET;
  return {
    esbuild: { jsx: "automatic" as const, jsxImportSource: "preact" },
    plugins: [one_file()],
    build: {
      outDir: "../build/webui",
      emptyOutDir: true,
      modulePreload: false,
      cssCodeSplit: false,
    },
    server: server === undefined ? {} : { proxy: { "/v1": server, "/props": server } },
  };
});
