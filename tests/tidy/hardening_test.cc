// The hardening that linker and compiler must have applied to the shipped binary.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

class Binary {
 public:
  Binary() {
    std::ifstream file(SLUICE_BINARY, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  bool read() const { return bytes_.size() > sizeof(Elf64_Ehdr); }
  template <typename Struct>
  Struct At(size_t offset) const {
    Struct value{};
    if (offset + sizeof value <= bytes_.size()) {
      std::memcpy(&value, bytes_.data() + offset, sizeof value);
    }
    return value;
  }
  std::vector<Elf64_Phdr> segments() const {
    const auto header = At<Elf64_Ehdr>(0);
    std::vector<Elf64_Phdr> all;
    for (size_t i = 0; i < header.e_phnum; ++i) {
      all.push_back(At<Elf64_Phdr>(header.e_phoff + i * header.e_phentsize));
    }
    return all;
  }
  // The value of an entry in the dynamic section; 0: there is none.
  uint64_t Dynamic(int64_t tag) const {
    for (const Elf64_Phdr& segment : segments()) {
      for (size_t at = 0; segment.p_type == PT_DYNAMIC && at < segment.p_filesz;
           at += sizeof(Elf64_Dyn)) {
        const auto entry = At<Elf64_Dyn>(segment.p_offset + at);
        if (entry.d_tag == tag) {
          return entry.d_un.d_val;
        }
      }
    }
    return 0;
  }
  bool Has(const std::string& symbol) const {
    return bytes_.find('\0' + symbol + '\0') != std::string::npos;
  }

 private:
  std::string bytes_;
};

TEST(Hardening, TheBinaryHasTheLinkersPart) {
  const Binary binary;
  ASSERT_TRUE(binary.read()) << SLUICE_BINARY;
  EXPECT_EQ(binary.At<Elf64_Ehdr>(0).e_type, ET_DYN) << "a position-independent executable";
  EXPECT_NE(binary.Dynamic(DT_FLAGS_1) & DF_1_PIE, 0U);
  EXPECT_NE(binary.Dynamic(DT_FLAGS_1) & DF_1_NOW, 0U) << "-z now";
  EXPECT_NE(binary.Dynamic(DT_FLAGS) & DF_BIND_NOW, 0U) << "-z now";
  bool relro = false;
  for (const Elf64_Phdr& segment : binary.segments()) {
    relro = relro || segment.p_type == PT_GNU_RELRO;
    if (segment.p_type == PT_GNU_STACK) {
      EXPECT_EQ(segment.p_flags & PF_X, 0U) << "an executable stack";
    }
    EXPECT_FALSE((segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0);
  }
  EXPECT_TRUE(relro) << "-z relro";
}

TEST(Hardening, TheBinaryHasTheCompilersPart) {
#ifndef NDEBUG
  GTEST_SKIP() << "of a release build";
#endif
  const Binary binary;
  EXPECT_TRUE(binary.Has("__stack_chk_fail")) << "-fstack-protector-strong";
  EXPECT_TRUE(binary.Has("__memcpy_chk")) << "_FORTIFY_SOURCE";
}

}  // namespace
