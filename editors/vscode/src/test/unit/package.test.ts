import assert from "node:assert";
import fs from "node:fs";
import { test } from "node:test";
import { KNOWN } from "../../settings";

interface Package {
  contributes: {
    commands: { command: string; category: string; icon?: string }[];
    keybindings: { command: string; when: string }[];
    configuration: { title: string; properties: Record<string, { description?: string; markdownDescription?: string; scope: string }> }[];
    menus: Record<string, { command: string }[]>;
  };
}

const { contributes } = JSON.parse(fs.readFileSync("package.json", "utf8")) as Package;
const settings = Object.entries(Object.assign({}, ...contributes.configuration.map((one) => one.properties)) as Package["contributes"]["configuration"][number]["properties"]);

test("every setting that goes to the server is one of package.json, and the other way round", () => {
  const names = settings.map(([name]) => name).filter((name) => name !== "funes.server.command");
  assert.deepStrictEqual(names.map((name) => name.replace("funes.", "")).sort(), [...KNOWN].sort());
});

test("every setting is described, and in a group", () => {
  assert.ok(contributes.configuration.length > 2);
  for (const { title, properties } of contributes.configuration) assert.ok(title && Object.keys(properties).length > 0);
  for (const [name, one] of settings) assert.ok(one.description ?? one.markdownDescription, name);
});

test("what runs and what is logged is chosen by the machine, never by a workspace", () => {
  const machine = settings.filter(([, one]) => one.scope === "machine").map(([name]) => name);
  assert.deepStrictEqual(machine.sort(), ["funes.log.level", "funes.server.command"]);
});

test("menus and keys name commands that are there", () => {
  const known = new Set(contributes.commands.map((one) => one.command));
  for (const { command } of [...Object.values(contributes.menus).flat(), ...contributes.keybindings]) assert.ok(known.has(command), command);
});

test("keys of ours are taken only where we are", () => {
  for (const { when, command } of contributes.keybindings) assert.match(when, /resourceScheme == funes|focusedView == funes/, command);
});

test("what package.json says is translated", () => {
  const plain: string[] = [];
  const look = (at: string, value: unknown): void => {
    if (typeof value === "object" && value !== null) for (const [key, inner] of Object.entries(value)) look(`${at}/${key}`, inner);
    else if (typeof value === "string" && /\/(title|description|markdownDescription|contents|name)$/.test(at) && !/^%[\w.]+%$/.test(value)) plain.push(at);
  };
  look("", contributes);
  // The name of the product.
  assert.deepStrictEqual(plain, ["/viewsContainers/activitybar/0/title"]);
});
