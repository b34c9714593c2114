#include "elastic/storage/byte_parts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "elastic/storage/crc32c.h"
#include "tests/support/sanitized.h"

namespace sluice::elastic {
namespace {

std::string InParts(const std::vector<std::string>& blocks, size_t part_bytes) {
  std::string all;
  PartWriter writer(part_bytes, [&all](const std::string& part) {
    all += part;
    return Status();
  });
  for (const std::string& block : blocks) {
    EXPECT_TRUE(writer.Block(block).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return all;
}

Result<std::vector<std::string>> Read(std::string_view bytes, size_t blocks) {
  MemorySource source(bytes);
  std::string mark(PartReader::kMarkBytes, '\0');
  RETURN_IF_ERROR(source.Read(mark.data(), mark.size()));
  if (!PartReader::IsMark(mark)) {
    return InvalidArgument("no mark");
  }
  PartReader reader(source);
  std::vector<std::string> read;
  while (read.size() < blocks) {
    ASSIGN_OR_RETURN(std::string block, reader.Block(1 << 20));
    read.push_back(std::move(block));
  }
  RETURN_IF_ERROR(reader.Finish());
  return read;
}

TEST(ByteParts, BlocksComeBackWhateverThePartsAre) {
  const std::vector<std::string> blocks = {"", "one", std::string(1'000, 'x'), ""};
  for (size_t part_bytes : {1U, 7U, 64U, 1'000'000U}) {
    EXPECT_EQ(Read(InParts(blocks, part_bytes), blocks.size()).value(), blocks) << part_bytes;
  }
}

TEST(ByteParts, DamageIsFound) {
  const std::string good = InParts({"one", "two"}, 5);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_FALSE(Read(bad, 2).ok()) << at;
    EXPECT_FALSE(Read(std::string_view(good).substr(0, at), 2).ok()) << at;
  }
  EXPECT_FALSE(Read(good + "x", 2).ok());
  EXPECT_FALSE(Read(good, 1).ok()) << "there is another block";
  EXPECT_FALSE(Read(good, 3).ok());
}

// A length is not trusted: there would not be enough memory for these.
TEST(ByteParts, ALengthBeyondWhatIsThereIsAnError) {
  for (uint64_t length : {uint64_t{9}, uint64_t{1} << 40, std::numeric_limits<uint64_t>::max()}) {
    std::string part(2 * sizeof(uint32_t) + sizeof(length), '\0');  // a header, and the length
    char* payload = part.data() + 2 * sizeof(uint32_t);
    std::memcpy(payload, &length, sizeof(length));
    const uint32_t header[] = {sizeof(length), Crc32c({payload, sizeof(length)})};
    std::memcpy(part.data(), header, sizeof(header));
    MemorySource source(part);
    PartReader reader(source);
    EXPECT_NE(reader.Block(std::numeric_limits<uint64_t>::max()).status().message().find("a block"),
              std::string::npos);
  }
}

// The length has more than 32 bits; the zero pages use no real memory.
TEST(ByteParts, ABlockOfMoreThan4GiBHasItsLength) {
  if (testing::kSanitized) {
    GTEST_SKIP() << "its checksum takes a minute under a sanitizer";
  }
  constexpr uint64_t kSize = (uint64_t{1} << 32) + 5;
  void* zeros = mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  madvise(zeros, kSize, MADV_HUGEPAGE);  // one page fault for 2 MiB instead of 512
  constexpr size_t kPartBytes = size_t{1} << 20;
  uint64_t bytes = 0, parts = 0, length = 0;
  PartWriter writer(kPartBytes, [&](const std::string& part) {
    if (parts == 0) {
      std::memcpy(&length, part.data() + PartReader::kMarkBytes + 8, sizeof(length));
    }
    EXPECT_LE(part.size(), kPartBytes + 16);
    bytes += part.size();
    ++parts;
    return Status();
  });
  ASSERT_TRUE(writer.Block({static_cast<const char*>(zeros), kSize}).ok());
  ASSERT_TRUE(writer.Finish().ok());
  munmap(zeros, kSize);
  EXPECT_EQ(length, kSize);
  EXPECT_EQ(parts, 4'097U);
  EXPECT_EQ(bytes, PartReader::kMarkBytes + parts * 8 + sizeof(length) + kSize);
}

// A block of zeros as from a file or a peer, without allocating that much memory.
class ZeroBlock final : public ByteSource {
 public:
  explicit ZeroBlock(uint64_t size) {
    std::string first(kMaxPartBytes, '\0');
    std::memcpy(first.data(), &size, sizeof(size));
    const uint64_t rest = size + sizeof(size) - kMaxPartBytes;
    first_ = WithHeader(std::move(first));
    middle_ = WithHeader(std::string(kMaxPartBytes, '\0'));
    last_ = WithHeader(std::string(rest % kMaxPartBytes, '\0'));
    middles_ = rest / kMaxPartBytes;
    left_ = first_.size() + middles_ * middle_.size() + last_.size();
  }
  Status Read(char* to, size_t bytes) override {
    while (bytes > 0) {
      const std::string& part = part_ == 0 ? first_ : part_ <= middles_ ? middle_ : last_;
      const size_t taken = std::min(bytes, part.size() - offset_);
      std::memcpy(to, part.data() + offset_, taken);
      to += taken;
      bytes -= taken;
      left_ -= taken;
      offset_ += taken;
      if (offset_ == part.size()) {
        offset_ = 0;
        ++part_;
      }
    }
    return Status();
  }
  uint64_t left() const override { return left_; }

 private:
  static std::string WithHeader(const std::string& payload) {
    const uint32_t header[] = {static_cast<uint32_t>(payload.size()), Crc32c(payload)};
    return std::string(reinterpret_cast<const char*>(header), sizeof(header)) + payload;
  }
  std::string first_, middle_, last_;
  uint64_t middles_ = 0, left_ = 0, part_ = 0;
  size_t offset_ = 0;
};

TEST(ByteParts, ABlockOf2GiBIsReadWhole) {
  if (testing::kSanitized) {
    GTEST_SKIP() << "it takes several times its memory under a sanitizer";
  }
  constexpr uint64_t kSize = (uint64_t{2} << 30) + 5;
  ZeroBlock source(kSize);
  PartReader reader(source);
  const Result<std::string> block = reader.Block(kSize);
  ASSERT_TRUE(block.ok()) << block.status().ToString();
  EXPECT_EQ(block->size(), kSize);
  // The rest is like its beginning; checking every byte would take a minute without optimisation.
  EXPECT_EQ(block->front(), '\0');
  EXPECT_EQ(std::memcmp(block->data(), block->data() + 1, kSize - 1), 0);
  EXPECT_TRUE(reader.Finish().ok());
}

}  // namespace
}  // namespace sluice::elastic
