import assert from "node:assert";
import { test } from "node:test";
import { visible } from "../../text";

test("control and bidi characters are shown", () => {
  assert.strictEqual(visible("a\u202eb\u001b[31m\u0000\tc\r\nd\re"), "a⟨U+202E⟩b⟨U+001B⟩[31m⟨U+0000⟩\tc\nd⟨U+000D⟩e");
});
