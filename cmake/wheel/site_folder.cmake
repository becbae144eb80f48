# SPDX-License-Identifier: Apache-2.0
# ullage_site_file(VAR file) sets VAR to the path of a file that a Python package provides. It searches the build's
# Python path; VAR is empty if there is no such file.
function(ullage_site_file variable file)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "import pathlib, sys; print(next((str(p) for p in (pathlib.Path(f, sys.argv[1]) for f in sys.path) if p.exists()), ''))" "${file}"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
