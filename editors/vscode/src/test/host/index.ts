/** Called by the extension host: runs a suite and says where it failed. */
import * as path from "node:path";
import Mocha from "mocha";

export function run(): Promise<void> {
  const mocha = new Mocha({ ui: "tdd", timeout: 30_000, color: false, reporter: "spec" });
  mocha.addFile(path.join(__dirname, `${process.env["FUNES_TEST_SUITE"] ?? "suite"}.js`));
  return new Promise((done, failed) => {
    mocha.run((failures) => (failures > 0 ? failed(new Error(`${failures} tests failed`)) : done()));
  });
}
