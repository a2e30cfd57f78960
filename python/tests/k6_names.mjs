// Names that the modules of @types/k6 export, as JSON: node k6_names.mjs TYPESCRIPT TYPES.
// For each module: names of values, of abstract classes, whose objects others make, and members of classes and interfaces.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [compiler, root] = process.argv.slice(2);
const ts = createRequire(import.meta.url)(compiler);
const files = fs.readdirSync(root, { recursive: true }).map(String).filter((file) => path.basename(file) === 'index.d.ts');
const program = ts.createProgram(files.map((file) => path.join(root, file)), {
  types: [], skipLibCheck: true, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
});
const checker = program.getTypeChecker();
const modules = {};
for (const file of files.sort()) {
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(path.join(root, file)));
  const found = { values: [], types: [], members: {} };
  for (const one of symbol === undefined ? [] : checker.getExportsOfModule(symbol)) {
    const real = one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one;
    if (real.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) {
      const members = checker.getDeclaredTypeOfSymbol(real).getProperties().map((member) => member.name);
      found.members[one.name] = members.filter((name) => !name.startsWith('__'));
    }
    if (one.name === 'default' || !(real.flags & ts.SymbolFlags.Value)) continue;
    const [declaration] = real.declarations ?? [];
    const isAbstract =
      declaration !== undefined &&
      ts.isClassDeclaration(declaration) &&
      (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Abstract) !== 0;
    found[isAbstract ? 'types' : 'values'].push(one.name);
  }
  const folder = path.dirname(file);
  modules[folder === '.' ? 'k6' : `k6/${folder}`] = found;
}
console.log(JSON.stringify(modules));
