// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/stand_ins.h"

#include "ullage/base/replace_file.h"
#include "ullage/drycard/cuda_libraries.h"
#include "ullage/drycard/elf/elf_file.h"
#include "ullage/drycard/elf/mapped_file.h"
#include "ullage/drycard/elf/stub_library.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace ullage::drycard {
namespace {

namespace fs = std::filesystem;

// Every stub calls this function of the dry card's library (card/unknown.h).
constexpr const char* kCallee = "ullage_drycard_unknown";
// Programs open these with dlopen, so no shared object needs them by name.
constexpr std::array kAlways = {"libcuda.so.1", "libnvidia-ml.so.1"};
// Another name of the first, which torch 2.1 opens and a linker looks for (-lcuda, by Triton).
constexpr const char* kUnnumbered = "libcuda.so";
// The library of torch that looks functions of kAlways up with dlsym. Older versions of torch end with an error if one
// of these functions is missing, whether it is called or not.
constexpr const char* kLooksUp = "libc10_cuda.so";

struct SharedObject {
  std::string path;
  MappedFile file;
  ElfFile elf;
  bool of_torch = false;
};

Result<SharedObject> open_shared_object(const std::string& path, bool of_torch) {
  ULLAGE_TRY_VALUE(MappedFile file, MappedFile::open(path));
  ULLAGE_TRY_VALUE(ElfFile elf, ElfFile::parse(file.bytes(), path));
  return SharedObject{path, std::move(file), std::move(elf), of_torch};
}

Error wrong_machine(const SharedObject& object) {
  const std::string which =
      object.elf.machine() == kAarch64 ? "aarch64" : fmt::format("machine {}", object.elf.machine());
  return {Error::Kind::BadArgument,
          fmt::format("built for {} (ELF number {}), a dry card is made for x86-64 ({}) alone", which,
                      object.elf.machine(), kX86_64),
          object.path};
}

Error system_refused(const std::string& path, const char* what, const std::error_code& why) {
  const bool missing = why == std::errc::no_such_file_or_directory || why == std::errc::not_a_directory;
  return {missing ? Error::Kind::NotFound : Error::Kind::System, fmt::format("cannot be {}: {}", what, why.message()),
          path};
}

// Returns whether it is the name of a shared object: "libc10.so", "libgomp.so.1" or "a.source.so", but not "x.source".
bool is_shared_name(const std::string& name) { return name.ends_with(".so") || name.find(".so.") != name.npos; }

// Returns the plain files, and links to such, that have the name of a shared object, sorted by name.
// With a recursive iterator also those at any depth, but not in the folders `passed_over`.
template <class Iterator>
Result<std::vector<std::string>> shared_objects_in(const std::string& folder, const fs::path& passed_over = {}) {
  std::error_code why;
  std::vector<std::string> found;
  Iterator at(folder, fs::directory_options::skip_permission_denied, why);
  if (why) return system_refused(folder, "looked into", why);
  for (; at != Iterator(); at.increment(why)) {
    std::error_code not_a_file;
    if constexpr (requires { at.disable_recursion_pending(); }) {
      const std::string name = at->path().filename().string();
      const bool has_none = name == "__pycache__";
      if (has_none || (name == passed_over.filename() && fs::equivalent(at->path(), passed_over, not_a_file))) {
        at.disable_recursion_pending();
        continue;
      }
    }
    if (is_shared_name(at->path().filename().string()) && at->is_regular_file(not_a_file)) {
      found.push_back(at->path().string());
    }
    if (why) break;
  }
  if (why) return system_refused(folder, "looked into", why);
  std::sort(found.begin(), found.end());
  return found;
}

// The symbols that other libraries import from one CUDA library.
struct Wanted {
  // Those that the dry card's library lacks: name to wanted versions. "" stands for an import without a version.
  std::map<std::string, std::set<std::string>> symbols;
  std::set<std::string> variables;    // the symbols among them that are no functions
  std::set<std::string> implemented;  // those that the dry card's library has; only counted
};

// An imported symbol without a version, which does not say what library has it.
struct Reference {
  std::string name;
  const SharedObject* from = nullptr;
  bool weak = false;
  bool is_variable = false;
};

class StandInMaker final {
 public:
  explicit StandInMaker(const StandInRequest& request) : request_(request) {}

  Result<StandIns> make() {
    ULLAGE_TRY(open_drycard());
    ULLAGE_TRY(open_torch());
    ULLAGE_TRY(open_others());
    note_majors();
    for (const char* soname : kAlways) libraries_[soname];
    for (const auto& object : objects_) note_needed(object);
    for (const auto& object : objects_) {
      ULLAGE_TRY(collect(object));
      if (object.of_torch && fs::path(object.path).filename() == kLooksUp) collect_looked_up(object);
    }
    ULLAGE_TRY(drop_what_users_have());
    assign_by_prefix();
    ULLAGE_TRY(write());
    return std::move(made_);
  }

 private:
  Status check_preloadable(const std::string& path) const {
    const auto at = path.find_first_of(" :");
    if (at == path.npos) return success();
    return Error{
        Error::Kind::BadArgument,
        fmt::format("LD_PRELOAD cannot name a path with '{}' (character {} of {}); use a path without blanks and "
                    "colons",
                    path[at], at + 1, path.size()),
        path};
  }

  Status open_drycard() {
    std::error_code why;
    const std::string path = fs::absolute(request_.drycard_library, why).lexically_normal().string();
    if (why) return system_refused(request_.drycard_library, "looked at", why);
    ULLAGE_TRY(check_preloadable(path));
    ULLAGE_TRY_VALUE(const SharedObject object, open_shared_object(path, false));
    if (object.elf.machine() != kX86_64) return wrong_machine(object);
    ULLAGE_TRY_VALUE(const auto symbols, object.elf.defined_symbols());
    for (const auto& symbol : symbols) implemented_.emplace(symbol.name);
    if (implemented_.count(kCallee) == 0) {
      return Error{Error::Kind::BadArgument,
                   fmt::format("exports {} symbols but not {}, so it is not the dry card's library",
                               implemented_.size(), kCallee),
                   path};
    }
    made_.preload.push_back(path);
    return success();
  }

  Status open_torch() {
    const std::string& folder = request_.torch_lib_folder;
    ULLAGE_TRY_VALUE(const auto paths, shared_objects_in<fs::directory_iterator>(folder));
    const auto has = [&](const char* name) {
      return std::any_of(paths.begin(), paths.end(),
                         [&](const auto& path) { return fs::path(path).filename() == name; });
    };
    if (!has("libtorch_cuda.so")) {
      const std::string what = has("libtorch_hip.so")   ? "this is a ROCm build of torch"
                               : has("libtorch_cpu.so") ? "this is a CPU build of torch"
                                                        : "this folder does not hold torch's libraries";
      return Error{
          Error::Kind::BadArgument,
          fmt::format("no libtorch_cuda.so among {} shared objects: {}; a dry card runs a CUDA build of torch, "
                      "installed with pip",
                      paths.size(), what),
          folder};
    }
    for (const auto& path : paths) ULLAGE_TRY(open(path, true));
    return success();
  }

  Status open_others() {
    for (const auto& other : request_.others) {
      std::error_code why;
      const auto kind = fs::status(other, why).type();
      if (kind == fs::file_type::not_found) return Error{Error::Kind::NotFound, "no such file or folder", other};
      if (why) return system_refused(other, "looked at", why);
      if (kind != fs::file_type::directory) {
        ULLAGE_TRY(open(other, false));
        continue;
      }
      const fs::path torch = fs::path(request_.torch_lib_folder).lexically_normal().parent_path();
      ULLAGE_TRY_VALUE(const auto paths, shared_objects_in<fs::recursive_directory_iterator>(other, torch));
      for (const auto& path : paths) open_if_linked(path);
    }
    return success();
  }

  // Opens a shared object. Many packages contain files that cannot be read, or that are for another machine. Such a
  // file is left out with a note. In torch's folder it is an error. But a text file with the name of a shared object (a
  // linker script) is left out with a note there too.
  Status open(const std::string& path, bool of_torch) {
    auto opened = open_shared_object(path, of_torch);
    if (opened && opened->elf.machine() != kX86_64) opened = wrong_machine(*opened);
    if (!opened) {
      const bool ours_to_report = of_torch && !is_text(path);
      if (ours_to_report) return opened.error();
      made_.notes.push_back("not looked at: " + opened.error().text());
      return success();
    }
    // Some wheels install a real CUDA library next to torch. It is skipped: LD_PRELOAD puts its stub before it, so it
    // is not loaded and its own imports do not matter.
    if (cuda_library(opened->elf.soname()).empty()) objects_.push_back(std::move(*opened));
    return success();
  }
  // Opens a shared object if the loader would take it and it needs a stub. Packages have many other files. The real
  // cuDNN plans workspaces, so its parts count too.
  void open_if_linked(const std::string& path) {
    auto opened = open_shared_object(path, false);
    if (!opened || opened->elf.machine() != kX86_64) return;
    if (has_stub(opened->elf.soname())) return;
    if (std::ranges::any_of(opened->elf.needed(), has_stub)) objects_.push_back(std::move(*opened));
  }
  static bool has_stub(std::string_view soname) { return !cuda_library(soname).empty() && !is_part_of_cudnn(soname); }
  // The parts of cuDNN, such as libcudnn_graph, need one another. With a stub in place of one the others would fail.
  static bool is_part_of_cudnn(std::string_view soname) { return soname.starts_with("libcudnn_"); }
  static bool is_text(const std::string& path) {
    const auto file = MappedFile::open(path);
    return file && !ElfFile::is_elf(file->bytes());
  }

  void note_majors() {
    for (const auto& object : objects_) {
      if (object.of_torch && made_.cuda_major == 0) made_.cuda_major = cuda_major_of(object);
      if (object.of_torch && made_.cudnn_major == 0) made_.cudnn_major = major_needed(object, "libcudnn");
    }
    for (const auto& object : objects_) {
      const int major = cuda_major_of(object);
      if (object.of_torch || major == 0 || made_.cuda_major == 0 || major == made_.cuda_major) continue;
      made_.other_majors.push_back({object.path, major});
    }
  }
  static int cuda_major_of(const SharedObject& object) { return major_needed(object, "libcudart"); }
  static int major_needed(const SharedObject& object, std::string_view library) {
    for (const auto soname : object.elf.needed()) {
      if (cuda_library(soname) == library) return major_version(soname);
    }
    return 0;
  }

  void note_needed(const SharedObject& object) {
    for (const auto soname : object.elf.needed()) {
      if (has_stub(soname) || (object.of_torch && is_part_of_cudnn(soname))) libraries_[std::string(soname)];
    }
  }

  Status collect(const SharedObject& object) {
    ULLAGE_TRY_VALUE(const auto symbols, object.elf.undefined_symbols());
    const bool is_part = is_part_of_cudnn(object.elf.soname());
    for (const auto& symbol : symbols) {
      if (is_part && cuda_library_of_function(symbol.name) == "libcudnn") continue;  // another part has it
      if (!object.of_torch && is_part_of_cudnn(symbol.version_file)) continue;
      const bool named = !symbol.version_file.empty();
      if (named ? cuda_library(symbol.version_file).empty() : cuda_library_of_function(symbol.name).empty()) continue;
      const bool is_variable = symbol.kind == ElfSymbol::Kind::Object;
      if (symbol.kind == ElfSymbol::Kind::ThreadLocal) {
        made_.notes.push_back(
            fmt::format("{} wants {} of {}, which each thread has for itself; stub libraries have no such symbols",
                        object.path, symbol.name, named ? symbol.version_file : "a CUDA library"));
      } else if (named) {
        want(std::string(symbol.version_file), std::string(symbol.name), std::string(symbol.version), is_variable);
      } else {
        references_.push_back({std::string(symbol.name), &object, symbol.weak, is_variable});
      }
    }
    return success();
  }

  // Looks for function names among the zero-terminated texts in the file. Wants each that is a function of a library in
  // kAlways.
  void collect_looked_up(const SharedObject& object) {
    const auto bytes = object.file.bytes();
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    for (std::size_t at = 0; at < content.size();) {
      const std::size_t end = std::min(content.find('\0', at), content.size());
      const std::string_view text = content.substr(at, end - at);
      at = end + 1;
      if (!std::ranges::all_of(text, is_of_name)) continue;
      const std::string_view library = cuda_library_of_function(text);
      for (const std::string soname : kAlways) {
        if (!library.empty() && cuda_library(soname) == library) want(soname, std::string(text), "", false);
      }
    }
  }

  void want(const std::string& soname, const std::string& name, const std::string& version, bool is_variable) {
    Wanted& wanted = libraries_[soname];
    // The stub must have the version even if none of its functions uses it, because the loader checks versions before
    // symbols.
    wanted_versions_[soname].insert(version);
    if (implemented_.count(name) != 0) {
      wanted.implemented.insert(name);
    } else {
      wanted.symbols[name].insert(version);
      if (is_variable) wanted.variables.insert(name);
    }
  }

  // Drops references to symbols that torch or a package defines itself, although their names look like CUDA's.
  Status drop_what_users_have() {
    std::unordered_set<std::string_view> looked_for;
    for (const auto& reference : references_) looked_for.insert(reference.name);
    std::unordered_set<std::string> had;
    for (const auto& object : objects_) {
      if (looked_for.empty()) break;
      ULLAGE_TRY_VALUE(const auto symbols, object.elf.defined_symbols());
      for (const auto& symbol : symbols) {
        if (looked_for.count(symbol.name) != 0) had.emplace(symbol.name);
      }
    }
    std::erase_if(references_, [&](const auto& reference) { return had.count(reference.name) != 0; });
    return success();
  }

  void assign_by_prefix() {
    for (const auto& reference : references_) {
      const auto library = cuda_library_of_function(reference.name);
      const auto soname = soname_for(library, *reference.from);
      if (!soname) {
        if (reference.weak) continue;
        made_.notes.push_back(fmt::format("{} imports {}, but no file that was searched is linked to a {}",
                                          reference.from->path, reference.name, library));
        continue;
      }
      // A weak symbol of a library that has versions. If the linker had found the symbol in the library, it would have
      // written the version into the program. So the library did not have the symbol, and the stub must not have it
      // either: the program may test whether its address is null.
      if (reference.weak && !versions_of(*soname).empty()) continue;
      want(*soname, reference.name, "", reference.is_variable);
    }
  }

  // Returns the soname of that library in the list of libraries that this file needs; else the first such soname, by
  // name, that any file needs. If no file needs that library, a real library that this file needs would bring it along:
  // libcublas needs libcublasLt. A stub needs no other one, so it has the function itself.
  std::optional<std::string> soname_for(std::string_view library, const SharedObject& object) const {
    for (const auto soname : object.elf.needed()) {
      if (cuda_library(soname) == library) return std::string(soname);
    }
    for (const auto& [soname, wanted] : libraries_) {
      if (cuda_library(soname) == library) return soname;
    }
    for (const auto soname : object.elf.needed()) {
      if (!cuda_library(soname).empty()) return std::string(soname);
    }
    return std::nullopt;
  }

  std::vector<std::string> versions_of(const std::string& soname) const {
    std::vector<std::string> versions;
    if (const auto found = wanted_versions_.find(soname); found != wanted_versions_.end()) {
      std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(versions),
                   [](const auto& version) { return !version.empty(); });
    }
    return versions;
  }

  Status write() {
    std::error_code why;
    const fs::path folder = fs::absolute(request_.out_folder, why).lexically_normal();
    if (!why) fs::create_directories(folder, why);
    if (why) return Error{Error::Kind::System, "cannot be made: " + why.message(), request_.out_folder};
    struct statvfs about {};
    if (::statvfs(folder.c_str(), &about) == 0 && (about.f_flag & ST_NOEXEC) != 0) {
      return Error{Error::Kind::System, "nothing in this folder can be loaded: it is mounted noexec; give another one",
                   folder.string()};
    }
    for (const auto& [soname, wanted] : libraries_) {
      if (std::ranges::find(request_.real, soname) != request_.real.end()) continue;
      const std::string path = (folder / soname).string();
      ULLAGE_TRY(check_preloadable(path));
      const StubLibrary library = stub_library(soname, wanted);
      ULLAGE_TRY(write_stub(path, library));
      made_.libraries.push_back({soname, path, library.versions, wanted.symbols.size(), wanted.implemented.size()});
      if (soname != kAlways.front()) continue;
      const std::string unnumbered = (folder / kUnnumbered).string();
      ULLAGE_TRY(write_stub(unnumbered, {kUnnumbered, {made_.preload.front(), path}, {}, {}, kCallee}));
    }
    return success();
  }

  Status write_stub(const std::string& path, const StubLibrary& library) {
    ULLAGE_TRY(replace_file(path, [&](std::ostream& out) {
      out << write_stub_library(library);
      return success();
    }));
    made_.preload.push_back(path);
    return success();
  }

  StubLibrary stub_library(const std::string& soname, const Wanted& wanted) const {
    StubLibrary library{soname, {made_.preload.front()}, versions_of(soname), {}, kCallee};
    for (const auto& [name, versions] : wanted.symbols) {
      for (const auto& version : versions) {
        if (version.empty() && versions.size() > 1) continue;  // a lookup without a version gets one of the others
        const auto at = std::find(library.versions.begin(), library.versions.end(), version);
        const auto index = at == library.versions.end() ? 0 : at - library.versions.begin();
        library.symbols.push_back({name, static_cast<std::size_t>(index), wanted.variables.count(name) != 0});
      }
    }
    return library;
  }

  const StandInRequest& request_;
  StandIns made_;
  std::set<std::string> implemented_;  // everything that the dry card's library exports
  std::vector<SharedObject> objects_;
  std::vector<Reference> references_;
  std::map<std::string, Wanted> libraries_;  // by soname
  std::map<std::string, std::set<std::string>> wanted_versions_;
};

}  // namespace

Result<StandIns> make_stand_ins(const StandInRequest& request) { return StandInMaker(request).make(); }

}  // namespace ullage::drycard
