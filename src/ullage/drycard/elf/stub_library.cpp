// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/elf/stub_library.h"

#include "ullage/base/check.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ullage::drycard {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFunctionBytes = 13;  // one lea and one jmp
constexpr std::uint64_t kFunctionPitch = 16;
constexpr std::uint64_t kVariableBytes = kPage;  // an import does not state the variable's size
constexpr std::uint32_t kFirstDefined = 2;       // symbols before it: the null symbol and the imported one
constexpr std::uint16_t kFirstVersion = 2;       // version indices before it: local and base
constexpr std::uint16_t kHidden = 0x8000;   // bit of a version index: a lookup without a version passes over the symbol
constexpr std::uint32_t kFilterShift = 26;  // second hash of the filter of .gnu.hash

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

// The hash of version names. System V ABI, "Hash Table".
std::uint32_t elf_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
  }
  return hash;
}

// Texts with a final zero, each stored once.
class StringTable final {
 public:
  std::uint32_t add(const std::string& text) {
    const auto [at, fresh] = places_.try_emplace(text, static_cast<std::uint32_t>(bytes_.size()));
    if (fresh) bytes_ += text + '\0';
    return at->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
  std::unordered_map<std::string, std::uint32_t> places_ = {{"", 0}};
};

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
void append_all(std::string& bytes, const std::vector<T>& values) {
  for (const T& value : values) append(bytes, value);
}

// A section of the file. Its address is also its offset in the file.
struct Section {
  const char* name = "";
  std::uint32_t type = SHT_NULL;
  std::uint64_t flags = 0;
  std::uint64_t alignment = 0;
  std::uint64_t entry = 0;  // bytes of one entry, if it is a table
  std::size_t link = 0;     // the section that it refers to
  std::uint32_t info = 0;
  std::string bytes{};
  std::uint64_t at = 0;
};

class StubWriter final {
 public:
  explicit StubWriter(const StubLibrary& library) : library_(library), symbols_(sorted()) {}

  // Makes all sections with zeros for addresses, places them, and then fills in what holds addresses.
  std::string write() {
    check();
    add_names();
    make_sections();
    place_sections();
    put(kSymbols, symbols());
    put(kRelocations, relocation());
    put(kText, text());
    put(kDynamic, dynamic());
    return headers_and_sections();
  }

 private:
  enum Number : std::size_t {
    kNull,
    kHash,
    kSymbols,
    kStrings,
    kVersionIndices,
    kVersions,
    kRelocations,
    kText,
    kDynamic,
    kGot,
    kData,
    kNames,
    kSections
  };
  static constexpr std::size_t kSegments = 5;

  std::uint32_t buckets() const {
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, library_.symbols.size() / 2));
  }

  // Returns the symbols ordered by hash bucket, because the hash table needs those of a bucket next to each other.
  std::vector<const StubSymbol*> sorted() const {
    std::vector<const StubSymbol*> sorted;
    sorted.reserve(library_.symbols.size());
    for (const auto& symbol : library_.symbols) sorted.push_back(&symbol);
    std::stable_sort(sorted.begin(), sorted.end(), [this](const auto* a, const auto* b) {
      return gnu_hash(a->name) % buckets() < gnu_hash(b->name) % buckets();
    });
    return sorted;
  }

  void check() const {
    const auto is_name = [](const std::string& name) { return !name.empty() && name.find('\0') == name.npos; };
    ULLAGE_CHECK(is_name(library_.soname) && is_name(library_.calls), "a stub library without a name or a callee");
    ULLAGE_CHECK(std::all_of(library_.needed.begin(), library_.needed.end(), is_name), "a needed library has no name");
    ULLAGE_CHECK(std::all_of(library_.versions.begin(), library_.versions.end(), is_name), "a version has no name");
    ULLAGE_CHECK(library_.versions.size() < std::size_t{kHidden - kFirstVersion}, "more versions than indices");
    std::set<std::pair<std::string_view, std::size_t>> seen;
    for (const auto& symbol : library_.symbols) {
      ULLAGE_CHECK(is_name(symbol.name) && symbol.name != library_.calls, "a stub has no name of its own");
      ULLAGE_CHECK(symbol.version < std::max<std::size_t>(1, library_.versions.size()), "a stub's version is missing");
      ULLAGE_CHECK(seen.emplace(symbol.name, symbol.version).second, "a stub is there twice");
    }
  }

  void add_names() {
    for (const auto& name : library_.needed) strings_.add(name);
    for (const auto& name : library_.versions) strings_.add(name);
    for (const auto* symbol : symbols_) strings_.add(symbol->name);
    strings_.add(library_.soname);
    strings_.add(library_.calls);
  }

  void make_sections() {
    const bool versions = !library_.versions.empty();
    const std::size_t count = kFirstDefined + symbols_.size();
    const auto zeros = [](std::size_t bytes) { return std::string(bytes, '\0'); };
    sections_.resize(kSections);
    sections_[kHash] = {".gnu.hash", SHT_GNU_HASH, SHF_ALLOC, 8, 0, kSymbols, 0, hash_table()};
    sections_[kSymbols] = {".dynsym",         SHT_DYNSYM, SHF_ALLOC, 8,
                           sizeof(Elf64_Sym), kStrings,   1,         zeros(count * sizeof(Elf64_Sym))};
    sections_[kStrings] = {".dynstr", SHT_STRTAB, SHF_ALLOC, 1, 0, 0, 0, strings_.bytes()};
    if (versions) {
      sections_[kVersionIndices] = {".gnu.version", SHT_GNU_versym, SHF_ALLOC, 2, 2, kSymbols, 0, version_indices()};
      sections_[kVersions] = {".gnu.version_d", SHT_GNU_verdef,  SHF_ALLOC,        8, 0,
                              kStrings,         version_count(), version_records()};
    }
    sections_[kRelocations] = {".rela.dyn",        SHT_RELA, SHF_ALLOC, 8,
                               sizeof(Elf64_Rela), kSymbols, 0,         zeros(sizeof(Elf64_Rela))};
    // Never empty, because a loader may reject a segment of 0 bytes.
    sections_[kText] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kPage, 0, 0, 0, text()};
    sections_[kDynamic] = {".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, kPage, sizeof(Elf64_Dyn), kStrings,
                           0,          dynamic()};
    sections_[kGot] = {".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 8, 8, 0, 0, zeros(8)};
    const auto variables = static_cast<std::size_t>(
        std::count_if(symbols_.begin(), symbols_.end(), [](const auto* symbol) { return symbol->is_variable; }));
    sections_[kData] = {
        ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, kPage, 0, 0, 0, zeros(variables * kVariableBytes)};
    sections_[kNames] = {".shstrtab", SHT_STRTAB, 0, 1};
    for (const auto& section : sections_) sections_[kNames].bytes += std::string(section.name) + '\0';
  }

  void place_sections() {
    std::uint64_t at = sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr);
    for (auto& section : sections_) {
      if (section.type == SHT_NULL) continue;
      section.at = (at + section.alignment - 1) / section.alignment * section.alignment;
      at = section.at + section.bytes.size();
    }
    file_size_ = (at + 7) / 8 * 8;  // section headers follow
  }

  // Fills in a section whose addresses are known now. Its size must stay the same.
  void put(Number section, std::string bytes) {
    ULLAGE_CHECK(bytes.size() == sections_[section].bytes.size(), "a section of a stub library changed its size");
    sections_[section].bytes = std::move(bytes);
  }

  // Returns four numbers (see the end of the function), a Bloom filter of 64-bit words, the first symbol of each
  // bucket, and the hash of each symbol. The lowest bit of a hash is set only for the last symbol of a bucket. No
  // specification has this format; it is written as glibc reads it (elf/dl-lookup.c).
  std::string hash_table() const {
    std::size_t words = 1;
    while (words * 8 < symbols_.size()) words *= 2;
    std::vector<std::uint64_t> filter(words);
    std::vector<std::uint32_t> first(buckets()), chain(symbols_.size());
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      const std::uint32_t hash = gnu_hash(symbols_[i]->name), bucket = hash % buckets();
      filter[hash / 64 % words] |= std::uint64_t{1} << hash % 64 | std::uint64_t{1} << (hash >> kFilterShift) % 64;
      if (first[bucket] == 0) first[bucket] = static_cast<std::uint32_t>(kFirstDefined + i);
      const bool last = i + 1 == symbols_.size() || gnu_hash(symbols_[i + 1]->name) % buckets() != bucket;
      chain[i] = (hash & ~1u) | (last ? 1u : 0u);
    }
    std::string bytes;
    append_all(bytes,
               std::vector<std::uint32_t>{buckets(), kFirstDefined, static_cast<std::uint32_t>(words), kFilterShift});
    append_all(bytes, filter);
    append_all(bytes, first);
    append_all(bytes, chain);
    return bytes;
  }

  std::string symbols() {
    const auto symbol = [this](const std::string& name, unsigned char type, std::uint16_t section, std::uint64_t at,
                               std::uint64_t size) {
      const auto info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type));
      return Elf64_Sym{strings_.add(name), info, STV_DEFAULT, section, at, size};
    };
    std::string bytes;
    append(bytes, Elf64_Sym{});
    append(bytes, symbol(library_.calls, STT_FUNC, SHN_UNDEF, 0, 0));
    std::uint64_t function = sections_[kText].at, variable = sections_[kData].at;
    for (const auto* one : symbols_) {
      append(bytes, one->is_variable ? symbol(one->name, STT_OBJECT, kData, variable, kVariableBytes)
                                     : symbol(one->name, STT_FUNC, kText, function, kFunctionBytes));
      (one->is_variable ? variable : function) += one->is_variable ? kVariableBytes : kFunctionPitch;
    }
    return bytes;
  }

  std::uint32_t version_count() const { return static_cast<std::uint32_t>(1 + library_.versions.size()); }

  std::string version_indices() const {
    std::unordered_map<std::string_view, std::size_t> last;
    for (const auto* symbol : symbols_) {
      auto& version = last[symbol->name];
      version = std::max(version, symbol->version);
    }
    std::string bytes;
    append(bytes, std::uint16_t{VER_NDX_LOCAL});
    append(bytes, std::uint16_t{VER_NDX_GLOBAL});
    for (const auto* symbol : symbols_) {
      const auto index = static_cast<std::uint16_t>(kFirstVersion + symbol->version);
      append(bytes, static_cast<std::uint16_t>(symbol->version == last[symbol->name] ? index : index | kHidden));
    }
    return bytes;
  }

  std::string version_records() {
    std::string bytes;
    for (std::uint32_t i = 0; i < version_count(); ++i) {
      const std::string& name = i == 0 ? library_.soname : library_.versions[i - 1];
      Elf64_Verdef record{};
      record.vd_version = VER_DEF_CURRENT;
      record.vd_flags = i == 0 ? VER_FLG_BASE : 0;
      record.vd_ndx = static_cast<std::uint16_t>(i + 1);
      record.vd_cnt = 1;
      record.vd_hash = elf_hash(name);
      record.vd_aux = sizeof(Elf64_Verdef);
      record.vd_next = i + 1 < version_count() ? sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux) : 0;
      append(bytes, record);
      append(bytes, Elf64_Verdaux{strings_.add(name), 0});
    }
    return bytes;
  }

  std::string relocation() const {
    std::string bytes;
    append(bytes, Elf64_Rela{sections_[kGot].at, ELF64_R_INFO(std::uint64_t{1}, R_X86_64_GLOB_DAT), 0});
    return bytes;
  }

  // Each stub puts its name into %rdi in place of the caller's first argument, which the callee does not need. It jumps
  // instead of calling, so that the callee returns directly to the stub's caller.
  std::string text() {
    constexpr char kTrap = '\xcc';
    std::string bytes;
    for (const auto* symbol : symbols_) {
      if (symbol->is_variable) continue;
      const std::uint64_t at = sections_[kText].at + bytes.size();
      const std::uint64_t name = sections_[kStrings].at + strings_.add(symbol->name);
      bytes.append(kFunctionPitch, kTrap);
      char* const code = &bytes[bytes.size() - kFunctionPitch];
      put_instruction(code, "\x48\x8d\x3d", 3, name - (at + 7));                 // lea name(%rip), %rdi
      put_instruction(code + 7, "\xff\x25", 2, sections_[kGot].at - (at + 13));  // jmp *got(%rip)
    }
    if (bytes.empty()) bytes.append(kFunctionPitch, kTrap);
    return bytes;
  }
  static void put_instruction(char* to, const char* opcode, std::size_t bytes, std::uint64_t distance) {
    const auto relative = static_cast<std::uint32_t>(distance);  // a stub library is far below 2 GiB
    std::memcpy(to, opcode, bytes);
    std::memcpy(to + bytes, &relative, sizeof relative);
  }

  std::string dynamic() {
    std::string bytes;
    const auto entry = [&bytes](std::int64_t tag, std::uint64_t value) { append(bytes, Elf64_Dyn{tag, {value}}); };
    for (const auto& name : library_.needed) entry(DT_NEEDED, strings_.add(name));
    entry(DT_SONAME, strings_.add(library_.soname));
    entry(DT_GNU_HASH, sections_[kHash].at);
    entry(DT_STRTAB, sections_[kStrings].at);
    entry(DT_SYMTAB, sections_[kSymbols].at);
    entry(DT_STRSZ, strings_.bytes().size());
    entry(DT_SYMENT, sizeof(Elf64_Sym));
    entry(DT_RELA, sections_[kRelocations].at);
    entry(DT_RELASZ, sizeof(Elf64_Rela));
    entry(DT_RELAENT, sizeof(Elf64_Rela));
    if (!library_.versions.empty()) {
      entry(DT_VERSYM, sections_[kVersionIndices].at);
      entry(DT_VERDEF, sections_[kVersions].at);
      entry(DT_VERDEFNUM, version_count());
    }
    entry(DT_NULL, 0);
    return bytes;
  }

  std::string headers_and_sections() const {
    std::string file;
    append(file, file_header());
    const auto end = [this](Number section) { return sections_[section].at + sections_[section].bytes.size(); };
    append(file, segment(PT_LOAD, PF_R, 0, end(kRelocations), kPage));
    append(file, segment(PT_LOAD, PF_R | PF_X, sections_[kText].at, end(kText), kPage));
    append(file, segment(PT_LOAD, PF_R | PF_W, sections_[kDynamic].at, end(kData), kPage));
    append(file, segment(PT_DYNAMIC, PF_R | PF_W, sections_[kDynamic].at, end(kDynamic), 8));
    append(file, segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16));
    for (const auto& section : sections_) {
      if (section.type == SHT_NULL) continue;
      file.resize(section.at);
      file += section.bytes;
    }
    file.resize(file_size_);
    std::uint32_t name = 0;
    for (const auto& section : sections_) {
      append(file, section_header(section, name));
      name += static_cast<std::uint32_t>(std::strlen(section.name) + 1);
    }
    return file;
  }

  Elf64_Ehdr file_header() const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_shoff = file_size_;
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = kSegments;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = kSections;
    header.e_shstrndx = kNames;
    return header;
  }

  static Elf64_Phdr segment(std::uint32_t type, std::uint32_t flags, std::uint64_t from, std::uint64_t until,
                            std::uint64_t alignment) {
    return {type, flags, from, from, from, until - from, until - from, alignment};
  }

  static Elf64_Shdr section_header(const Section& section, std::uint32_t name) {
    if (section.type == SHT_NULL) return {};  // kNull; and of a library without versions, the sections for versions
    Elf64_Shdr header{};
    header.sh_name = name;
    header.sh_type = section.type;
    header.sh_flags = section.flags;
    header.sh_addr = section.flags != 0 ? section.at : 0;
    header.sh_offset = section.at;
    header.sh_size = section.bytes.size();
    header.sh_link = static_cast<std::uint32_t>(section.link);
    header.sh_info = section.info;
    header.sh_addralign = section.alignment;
    header.sh_entsize = section.entry;
    return header;
  }

  const StubLibrary& library_;
  const std::vector<const StubSymbol*> symbols_;  // in the order of the hash table
  StringTable strings_;
  std::vector<Section> sections_;
  std::uint64_t file_size_ = 0;  // without the section headers, which begin there
};

}  // namespace

std::string write_stub_library(const StubLibrary& library) { return StubWriter(library).write(); }

}  // namespace ullage::drycard
