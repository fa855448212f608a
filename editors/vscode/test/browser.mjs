// A browser that reaches nothing but this machine.
import { chromium } from "playwright-core";

const OPTIONS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** Returns a page, and the places other than this machine that it asked. */
export async function open(profile) {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.FUNES_BROWSER ?? "/usr/bin/chromium",
    headless: true,
    viewport: { width: 1280, height: 800 },
    args: OPTIONS,
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const elsewhere = new Set();
  page.on("request", (request) => {
    const { hostname, protocol, origin } = new URL(request.url());
    if (/^(http|ws)/.test(protocol) && hostname !== "127.0.0.1") elsewhere.add(origin);
  });
  return { context, page, elsewhere };
}
