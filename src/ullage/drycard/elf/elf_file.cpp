// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/elf/elf_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace ullage::drycard {
namespace {

constexpr std::uint16_t kVersionMask = 0x7fff;    // the remaining bit means hidden
constexpr std::size_t kMostVersions = 0x8000;     // there are no more indices
constexpr std::uint64_t kMostPerStringByte = 16;  // bytes of names per byte of the string table: names may share a tail

Error damaged(const std::string& name, std::uint64_t at, std::string message) {
  return {Error::Kind::BadFile, std::move(message), fmt::format("{}:{}", name, at)};
}

// Reads names from the string table. Names may overlap, so a small file may hold many long ones. The sum of their
// lengths is bounded.
class StringReader final {
 public:
  StringReader(std::string_view table, std::uint64_t table_offset, const std::string& file)
      : table_(table), offset_(table_offset), file_(file), left_(kMostPerStringByte * (table.size() + 4096)) {}

  Result<std::string_view> at(std::uint64_t place, std::uint64_t user) {
    if (place >= table_.size()) {
      return damaged(file_, user,
                     fmt::format("a name at {} of the string table, which has {} bytes: the file is damaged", place,
                                 table_.size()));
    }
    const std::size_t end = table_.find('\0', place);
    if (end == table_.npos) {
      return damaged(file_, offset_ + place,
                     fmt::format("a name without an end, {} bytes before the string table's end at {}: the file is "
                                 "damaged",
                                 table_.size() - place, offset_ + table_.size()));
    }
    const std::uint64_t length = end - place + 1;
    if (length > left_) {
      return damaged(file_, user,
                     fmt::format("names of more than {} bytes, the string table has {}: the file is damaged",
                                 kMostPerStringByte * (table_.size() + 4096), table_.size()));
    }
    left_ -= length;
    return table_.substr(place, end - place);
  }

 private:
  std::string_view table_;
  std::uint64_t offset_;
  const std::string& file_;
  std::uint64_t left_;
};

ElfSymbol::Kind kind_of(const Elf64_Sym& symbol) {
  switch (ELF64_ST_TYPE(symbol.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
      return ElfSymbol::Kind::Function;
    case STT_OBJECT:
    case STT_COMMON:
      return ElfSymbol::Kind::Object;
    case STT_TLS:
      return ElfSymbol::Kind::ThreadLocal;
    default:
      return ElfSymbol::Kind::Unknown;
  }
}

bool is_hidden_from_others(const Elf64_Sym& symbol) {
  const auto seen = ELF64_ST_VISIBILITY(symbol.st_other);
  return ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || seen == STV_HIDDEN || seen == STV_INTERNAL;
}

template <class T>
T read_at(std::span<const std::byte> file, std::uint64_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

}  // namespace

class ElfParser final {
 public:
  ElfParser(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}

  Result<ElfFile> parse() {
    elf_.file_ = file_;
    elf_.name_ = name_;
    if (!read_header() || !read_dynamic() || !find_strings() || !read_names() || !find_symbols() || !read_versions()) {
      return std::move(*error_);
    }
    return std::move(elf_);
  }

 private:
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  template <class T>
  T at(std::uint64_t offset) const {
    return read_at<T>(file_, offset);
  }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= file_.size() && file_.size() - offset >= bytes;
  }
  bool fail(std::uint64_t offset, std::string message) {
    error_ = damaged(name_, offset, std::move(message));
    return false;
  }
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }

  bool read_header() {
    if (!ElfFile::is_elf(file_)) return fail(0, "not an ELF file: it does not begin with 0x7f ELF");
    if (file_.size() < sizeof(Elf64_Ehdr)) {
      return fail(file_.size(), fmt::format("the file ends within its header: it has {} bytes, a header has {}",
                                            file_.size(), sizeof(Elf64_Ehdr)));
    }
    const auto header = at<Elf64_Ehdr>(0);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
      return fail(EI_CLASS, fmt::format("an ELF file of class {} and byte order {}; only 64 bits and little endian "
                                        "({} and {}) can be read",
                                        header.e_ident[EI_CLASS], header.e_ident[EI_DATA], ELFCLASS64, ELFDATA2LSB));
    }
    if (header.e_type != ET_DYN && header.e_type != ET_EXEC) {
      return fail(offsetof(Elf64_Ehdr, e_type),
                  fmt::format("an ELF file of type {}, a shared object is {}", header.e_type, ET_DYN));
    }
    elf_.machine_ = header.e_machine;
    return read_program_headers(header);
  }

  bool read_program_headers(const Elf64_Ehdr& header) {
    if (header.e_phentsize != sizeof(Elf64_Phdr) && header.e_phnum != 0) {
      return fail(offsetof(Elf64_Ehdr, e_phentsize),
                  fmt::format("program headers of {} bytes each, a program header has {}: the file is damaged",
                              header.e_phentsize, sizeof(Elf64_Phdr)));
    }
    const std::uint64_t bytes = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (!holds(header.e_phoff, bytes)) {
      return fail(offsetof(Elf64_Ehdr, e_phoff),
                  fmt::format("{} program headers at {}, the file has {} bytes: it is cut short or damaged",
                              header.e_phnum, header.e_phoff, file_.size()));
    }
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
      const std::uint64_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
      const auto part = at<Elf64_Phdr>(offset);
      if (part.p_type != PT_LOAD && part.p_type != PT_DYNAMIC) continue;
      if (!holds(part.p_offset, part.p_filesz)) {
        return fail(offset, fmt::format("a segment of {} bytes at {}, the file has {}: it is cut short or damaged",
                                        part.p_filesz, part.p_offset, file_.size()));
      }
      if (part.p_type == PT_LOAD) {
        loads_.push_back(part);
      } else {
        dynamic_ = Part{part.p_offset, part.p_filesz};
      }
    }
    if (dynamic_) return true;
    return fail(header.e_phoff,
                fmt::format("no dynamic segment among {} program headers: no shared object", header.e_phnum));
  }

  // If a tag occurs several times, the last entry counts, as for the loader.
  bool read_dynamic() {
    for (std::uint64_t i = 0; i < dynamic_->size / sizeof(Elf64_Dyn); ++i) {
      const std::uint64_t offset = dynamic_->offset + i * sizeof(Elf64_Dyn);
      const auto entry = at<Elf64_Dyn>(offset);
      switch (entry.d_tag) {
        case DT_NULL:
          return true;
        case DT_NEEDED:
          needed_.push_back({offset, entry.d_un.d_val});
          break;
        case DT_SONAME:
          soname_ = Tag{offset, entry.d_un.d_val};
          break;
        case DT_STRTAB:
          string_table_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_STRSZ:
          string_size_ = Tag{offset, entry.d_un.d_val};
          break;
        case DT_SYMTAB:
          symbol_table_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_SYMENT:
          symbol_size_ = Tag{offset, entry.d_un.d_val};
          break;
        case DT_HASH:
          hash_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_GNU_HASH:
          gnu_hash_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_VERSYM:
          version_table_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_VERNEED:
          wanted_versions_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_VERDEF:
          own_versions_ = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_RELA:
          relocations_[0] = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_RELASZ:
          relocation_sizes_[0] = Tag{offset, entry.d_un.d_val};
          break;
        case DT_JMPREL:
          relocations_[1] = Tag{offset, entry.d_un.d_ptr};
          break;
        case DT_PLTRELSZ:
          relocation_sizes_[1] = Tag{offset, entry.d_un.d_val};
          break;
        default:
          break;
      }
    }
    return fail(dynamic_->offset,
                fmt::format("a dynamic segment of {} bytes without its end: the file is damaged", dynamic_->size));
  }

  struct Tag {
    std::uint64_t offset = 0;  // of the entry in the file
    std::uint64_t value = 0;
  };

  // Returns where an address is in the file, and how many bytes follow it in its segment.
  std::optional<Part> place(std::uint64_t address) const {
    for (const auto& load : loads_) {
      if (address < load.p_vaddr || address - load.p_vaddr >= load.p_filesz) continue;
      const std::uint64_t within = address - load.p_vaddr;
      return Part{load.p_offset + within, load.p_filesz - within};
    }
    return std::nullopt;
  }
  // Returns the place of a tag's address. Fails if fewer than `bytes` bytes are in the file there.
  std::optional<Part> part(const Tag& tag, std::uint64_t bytes, const char* what) {
    const auto found = place(tag.value);
    if (found && found->size >= bytes) return found;
    fail(tag.offset,
         fmt::format("the {} is said to have {} bytes at address {:#x}, where the file has {}: it is damaged", what,
                     bytes, tag.value, found ? found->size : 0));
    return std::nullopt;
  }

  bool find_strings() {
    if (!string_table_ || !string_size_ || !symbol_table_) {
      return fail(dynamic_->offset, "no string table or no symbol table in the dynamic segment: the file is damaged");
    }
    const auto table = part(*string_table_, string_size_->value, "string table");
    if (!table) return false;
    elf_.strings_ = {{reinterpret_cast<const char*>(file_.data()) + table->offset, string_size_->value}, table->offset};
    strings_.emplace(elf_.strings_.bytes, table->offset, name_);
    return true;
  }

  bool text(const Tag& tag, std::string_view& into) {
    const auto found = strings_->at(tag.value, tag.offset);
    if (!found) return fail(found.error());
    into = *found;
    return true;
  }

  bool read_names() {
    if (soname_ && !text(*soname_, elf_.soname_)) return false;
    elf_.needed_.resize(needed_.size());
    for (std::size_t i = 0; i < needed_.size(); ++i) {
      if (!text(needed_[i], elf_.needed_[i])) return false;
    }
    return true;
  }

  // The symbol table does not state its length. The hash tables do; without them, relocations give a lower bound.
  bool find_symbols() {
    if (symbol_size_ && symbol_size_->value != sizeof(Elf64_Sym)) {
      return fail(symbol_size_->offset, fmt::format("symbols of {} bytes each, a symbol has {}: the file is damaged",
                                                    symbol_size_->value, sizeof(Elf64_Sym)));
    }
    if (!(hash_ ? count_by_hash() : gnu_hash_ ? count_by_gnu_hash() : count_by_relocations())) return false;
    if (elf_.count_ > file_.size() / sizeof(Elf64_Sym)) {
      return fail(symbol_table_->offset,
                  fmt::format("{} symbols in a file of {} bytes: it is damaged", elf_.count_, file_.size()));
    }
    const auto table = part(*symbol_table_, elf_.count_ * sizeof(Elf64_Sym), "symbol table");
    if (!table) return false;
    elf_.symbols_ = table->offset;
    return true;
  }

  bool count_by_hash() {
    const auto table = part(*hash_, 8, "hash table");
    if (!table) return false;
    elf_.count_ = at<std::uint32_t>(table->offset + 4);
    return true;
  }

  // A bucket names its first symbol. Its chain goes on until a hash with the lowest bit set.
  bool count_by_gnu_hash() {
    auto table = part(*gnu_hash_, 16, "hash table");
    if (!table) return false;
    const std::uint64_t buckets = at<std::uint32_t>(table->offset);
    const std::uint64_t first = at<std::uint32_t>(table->offset + 4);
    const std::uint64_t filters = at<std::uint32_t>(table->offset + 8);
    const std::uint64_t head = 16 + filters * 8;
    table = part(*gnu_hash_, head + buckets * 4, "hash table");
    if (!table) return false;
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < buckets; ++i) {
      last = std::max<std::uint64_t>(last, at<std::uint32_t>(table->offset + head + i * 4));
    }
    // No bucket has a symbol, so the file defines none. The table does not say where the wanted symbols end.
    if (last == 0) return count_by_relocations();
    if (last < first) {
      return fail(table->offset, fmt::format("a bucket begins with symbol {}, the first one in the table is {}: the "
                                             "file is damaged",
                                             last, first));
    }
    const std::uint64_t chains = head + buckets * 4;
    for (std::uint64_t i = last - first;; ++i) {
      if ((table->size - chains) / 4 <= i) {
        return fail(table->offset,
                    fmt::format("a chain of the hash table passes its segment's end, {} bytes behind it: "
                                "the file is damaged",
                                table->size));
      }
      if ((at<std::uint32_t>(table->offset + chains + i * 4) & 1) == 0) continue;
      elf_.count_ = first + i + 1;
      return true;
    }
  }

  // A wanted symbol that no relocation names has no effect, so it may be missed.
  bool count_by_relocations() {
    for (int i = 0; i < 2; ++i) {
      if (!relocations_[i] || !relocation_sizes_[i]) continue;
      const auto table = part(*relocations_[i], relocation_sizes_[i]->value, "relocation table");
      if (!table) return false;
      for (std::uint64_t k = 0; k < relocation_sizes_[i]->value / sizeof(Elf64_Rela); ++k) {
        const auto relocation = at<Elf64_Rela>(table->offset + k * sizeof(Elf64_Rela));
        elf_.count_ = std::max<std::uint64_t>(elf_.count_, ELF64_R_SYM(relocation.r_info) + 1);
      }
    }
    return true;
  }

  bool read_versions() {
    if (!version_table_) return true;
    const auto table = part(*version_table_, elf_.count_ * 2, "table of versions");
    if (!table) return false;
    elf_.version_indices_ = table->offset;
    elf_.has_versions_ = true;
    return read_own_versions() && read_wanted_versions();
  }

  bool add_version(std::uint64_t at, std::uint16_t index, ElfFile::Version version) {
    if (++versions_ > kMostVersions) {
      return fail(at, fmt::format("more than {} versions: the file is damaged", kMostVersions));
    }
    index &= kVersionMask;
    if (index >= elf_.versions_.size()) elf_.versions_.resize(index + std::size_t{1});
    elf_.versions_[index] = version;
    return true;
  }

  // Moves `at` to the next record of a list, `by` bytes on. Fails unless `record` bytes are left in the segment there.
  bool step(Part& at, std::uint64_t by, std::uint64_t record, const char* what) {
    if (by >= record && by <= at.size && at.size - by >= record) {
      at = {at.offset + by, at.size - by};
      return true;
    }
    return fail(at.offset, fmt::format("the next record of {} is said to be {} bytes on, its segment has {}: the file "
                                       "is damaged",
                                       what, by, at.size));
  }

  bool read_own_versions() {
    if (!own_versions_) return true;
    auto at = part(*own_versions_, sizeof(Elf64_Verdef), "table of versions that the file has");
    if (!at) return false;
    while (true) {
      const auto record = this->at<Elf64_Verdef>(at->offset);
      Part name = *at;
      if (!step(name, record.vd_aux, sizeof(Elf64_Verdaux), "own versions")) return false;
      ElfFile::Version version;
      if (!text({name.offset, this->at<Elf64_Verdaux>(name.offset).vda_name}, version.name)) return false;
      version.base = (record.vd_flags & VER_FLG_BASE) != 0;
      if (!add_version(at->offset, record.vd_ndx, version)) return false;
      if (record.vd_next == 0) return true;
      if (!step(*at, record.vd_next, sizeof(Elf64_Verdef), "own versions")) return false;
    }
  }

  bool read_wanted_versions() {
    if (!wanted_versions_) return true;
    auto at = part(*wanted_versions_, sizeof(Elf64_Verneed), "table of versions that the file wants");
    if (!at) return false;
    while (true) {
      const auto record = this->at<Elf64_Verneed>(at->offset);
      std::string_view file;
      if (!text({at->offset, record.vn_file}, file)) return false;
      if (!read_versions_of(file, *at, record)) return false;
      if (record.vn_next == 0) return true;
      if (!step(*at, record.vn_next, sizeof(Elf64_Verneed), "wanted versions")) return false;
    }
  }

  bool read_versions_of(std::string_view file, Part at, const Elf64_Verneed& record) {
    std::uint64_t by = record.vn_aux;
    for (std::uint32_t i = 0; i < record.vn_cnt; ++i) {
      if (!step(at, by, sizeof(Elf64_Vernaux), "wanted versions")) return false;
      const auto one = this->at<Elf64_Vernaux>(at.offset);
      ElfFile::Version version;
      version.file = file;
      if (!text({at.offset, one.vna_name}, version.name)) return false;
      if (!add_version(at.offset, one.vna_other, version)) return false;
      if (one.vna_next == 0) break;
      by = one.vna_next;
    }
    return true;
  }

  const std::span<const std::byte> file_;
  const std::string& name_;
  ElfFile elf_;
  std::vector<Elf64_Phdr> loads_;
  std::optional<Part> dynamic_;
  std::vector<Tag> needed_;
  std::optional<Tag> soname_, string_table_, string_size_, symbol_table_, symbol_size_, hash_, gnu_hash_;
  std::optional<Tag> version_table_, wanted_versions_, own_versions_, relocations_[2], relocation_sizes_[2];
  std::optional<StringReader> strings_;
  std::size_t versions_ = 0;
  std::optional<Error> error_;
};

bool ElfFile::is_elf(std::span<const std::byte> file) {
  return file.size() >= SELFMAG && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0;
}

Result<ElfFile> ElfFile::parse(std::span<const std::byte> file, const std::string& name) {
  return ElfParser(file, name).parse();
}

Result<std::vector<ElfSymbol>> ElfFile::defined_symbols() const { return symbols(true); }
Result<std::vector<ElfSymbol>> ElfFile::undefined_symbols() const { return symbols(false); }

Result<std::vector<ElfSymbol>> ElfFile::symbols(bool defined) const {
  std::vector<ElfSymbol> found;
  StringReader strings(strings_.bytes, strings_.offset, name_);
  for (std::uint64_t i = 1; i < count_; ++i) {
    const std::uint64_t offset = symbols_ + i * sizeof(Elf64_Sym);
    const auto symbol = read_at<Elf64_Sym>(file_, offset);
    if ((symbol.st_shndx != SHN_UNDEF) != defined || is_hidden_from_others(symbol)) continue;
    const auto index = has_versions_ ? read_at<std::uint16_t>(file_, version_indices_ + i * 2) : std::uint16_t{1};
    if (defined && index == VER_NDX_LOCAL) continue;
    ULLAGE_TRY_VALUE(const std::string_view name, strings.at(symbol.st_name, offset));
    ElfSymbol one{name, {}, {}, kind_of(symbol), ELF64_ST_BIND(symbol.st_info) == STB_WEAK, false};
    const std::size_t version = index & kVersionMask;
    if (version > VER_NDX_GLOBAL || (version < versions_.size() && !versions_[version].name.empty())) {
      if (version >= versions_.size() || versions_[version].name.empty()) {
        return damaged(
            name_, version_indices_ + i * 2,
            fmt::format("a symbol has version {}, the file has {} versions: it is damaged", version, versions_.size()));
      }
      if (!versions_[version].base) {
        one.version = versions_[version].name;
        if (!defined) one.version_file = versions_[version].file;
      }
    }
    one.hidden = defined && index > kVersionMask;
    found.push_back(one);
  }
  return found;
}

}  // namespace ullage::drycard
