/** Called by the extension host: runs suites and says where they failed. */
import * as path from "node:path";
import Mocha from "mocha";

export function run(): Promise<void> {
  const mocha = new Mocha({ ui: "tdd", timeout: 60_000, color: false, reporter: "spec" });
  for (const name of (process.env["FUNES_TEST_SUITE"] ?? "suite").split(",")) mocha.addFile(path.join(__dirname, `${name}.js`));
  return new Promise((done, failed) => {
    mocha.run((failures) => (failures > 0 ? failed(new Error(`${failures} tests failed`)) : done()));
  });
}
