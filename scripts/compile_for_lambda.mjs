// Compiles Python modules by the CPython 3.13 of pyodide, for machines that have another Python:
//   node scripts/compile_for_lambda.mjs checked-hash|unchecked-hash FOLDER...
import { loadPyodide } from "pyodide";

const [mode, ...folders] = process.argv.slice(2);
const python = await loadPyodide();
folders.forEach((root, index) => {
  python.FS.mkdir(`/${index}`);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, `/${index}`);
});
python.globals.set("mode", mode);
python.globals.set("count", folders.length);
const compiled = python.runPython(`
import compileall, py_compile
invalidation = py_compile.PycInvalidationMode[mode.upper().replace("-", "_")]
all([compileall.compile_dir(f"/{n}", quiet=1, force=True, invalidation_mode=invalidation) for n in range(count)])
`);
process.exit(compiled ? 0 : 1);
