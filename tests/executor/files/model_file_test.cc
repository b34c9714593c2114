#include "executor/files/model_file.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "catalog/sha256.h"

namespace sluice::executor {
namespace {

constexpr size_t kChecksumBytes = 64;

catalog::ModelVersion Version() {
  catalog::ModelVersion version;
  version.schema = "ann";
  version.name = "churn";
  version.version = 3;
  version.statement = "SELECT * FROM t LABEL y INTO churn";
  version.plan = std::string("a\0plan", 6);
  version.metrics = {{"auc", 0.75}, {"train_loss", 0.5}};
  version.rows = 1'000;
  version.lineage = R"({"seed":1})";
  return version;
}

// The same content with a checksum that fits.
std::string Signed(std::string bytes) {
  bytes.resize(bytes.size() - kChecksumBytes);
  catalog::Sha256 sha256;
  sha256.Add(bytes);
  return bytes + sha256.Hex();
}

TEST(ModelFile, HoldsAVersionAndItsWeights) {
  const std::string weights("weights\0\xff", 9);
  const auto file = ReadModelFile(WriteModelFile(Version(), weights));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const catalog::ModelVersion wanted = Version();
  EXPECT_EQ(file->version.schema, "") << "schemas are of a database";
  EXPECT_EQ(file->version.name, wanted.name);
  EXPECT_EQ(file->version.version, wanted.version);
  EXPECT_EQ(file->version.statement, wanted.statement);
  EXPECT_EQ(file->version.plan, wanted.plan);
  EXPECT_EQ(file->version.metrics, wanted.metrics);
  EXPECT_EQ(file->version.rows, wanted.rows);
  EXPECT_EQ(file->version.lineage, wanted.lineage);
  EXPECT_EQ(file->weights, weights);
}

TEST(ModelFile, OtherFilesAreNamedAsSuch) {
  EXPECT_EQ(ReadModelFile("").status().message(), "the file is not one that EXPORT MODEL wrote");
  EXPECT_EQ(ReadModelFile("{\"learner\": {}}").status().message(),
            "the file is not one that EXPORT MODEL wrote");
  EXPECT_EQ(ReadModelFile("sluice model 2\n").status().message(),
            "the file is of a format that this version of Sluice cannot read");
}

TEST(ModelFile, DamageIsFound) {
  const std::string whole = WriteModelFile(Version(), "weights");
  for (size_t length = 0; length < whole.size(); ++length) {
    ASSERT_FALSE(ReadModelFile(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ReadModelFile(whole + "x").ok());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    ASSERT_FALSE(ReadModelFile(flipped).ok()) << at;
  }
}

TEST(ModelFile, AForgedOneWithAFittingChecksumDoesNoHarm) {
  std::mt19937 random(1);
  const std::string whole = WriteModelFile(Version(), "weights");
  for (int i = 0; i < 20'000; ++i) {
    std::string forged = whole;
    for (size_t n = random() % 4; n < 4; ++n) {
      forged[random() % (forged.size() - kChecksumBytes)] = static_cast<char>(random());
    }
    const auto read = ReadModelFile(Signed(forged));
    if (read.ok()) {
      EXPECT_FALSE(read->version.name.empty());
      EXPECT_EQ(read->version.statement.find('\0'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sluice::executor
