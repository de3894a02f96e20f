// Has the importer of the npm package `speedscope` read a file, as its page does with one that is
// dropped on it: node speedscope.cjs FOLDER-OF-THE-PACKAGE FILE
//
// The package has only the page, in one bundle. Its importer is called from there: of the page
// nothing else runs, for there is no document here.
"use strict";
const fs = require("fs");
const path = require("path");

const [folder, file] = process.argv.slice(2);
if (!file) {
  console.error("usage: node speedscope.cjs FOLDER-OF-THE-PACKAGE FILE");
  process.exit(2);
}
const release = path.join(folder, "dist", "release");
const name = fs.readdirSync(release).find((name) => /^speedscope-\w+\.js$/.test(name));
const bundle = fs.readFileSync(path.join(release, name), "utf8");
const importer = /async function (\w+)\(\w+,\w+\)\{return\(await \w+\)\.importProfileGroupFromText\(/;
const found = bundle.match(importer);
if (!found) {
  console.error(`no importer in ${name}`);
  process.exit(1);
}
// What follows the importer is the page. What stands before it asks a window for its colours and
// the like, and may have any answer.
const begin = bundle.slice(0, bundle.indexOf("}", found.index + found[0].length) + 1);
const anything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : anything),
  set: () => true,
  apply: () => anything,
  construct: () => anything,
});
for (const name of ["window", "document", "localStorage", "matchMedia"]) {
  Object.defineProperty(globalThis, name, { value: anything, configurable: true });
}
new Function(`${begin};globalThis.importer=${found[1]};})();`)();
globalThis.importer(path.basename(file), fs.readFileSync(file, "utf8")).then((group) => {
  if (!group) {
    console.error("speedscope does not know the format");
    process.exit(1);
  }
  console.log(`name ${group.name}`);
  for (const profile of group.profiles) {
    let frames = 0;
    profile.forEachFrame(() => frames++);
    console.log(`profile ${profile.getName()}: ${frames} frames, ${profile.getTotalWeight()} ${profile.getWeightUnit()}`);
  }
}).catch((error) => {
  console.error(String(error));
  process.exit(1);
});
