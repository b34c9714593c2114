#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "server/sample/sample.h"
#include "server/sample/sample_random.h"

// Rows that resemble a click log (Criteo's shape): i1..i13 are counts with NULLs, c1..c26 are
// hashed texts whose frequencies follow Zipf's law, label is the click. The true model is a
// factorisation machine: every value has a weight and a small vector, and pairs of columns interact
// through the vectors.
namespace sluice::server {
namespace {

constexpr size_t kNumbers = 13;
constexpr size_t kCategories = 26;
constexpr size_t kFactors = 4;
constexpr size_t kInteracting = 8;  // columns c1..c8 interact; 28 pairs are enough to matter
constexpr double kClickIntercept = -1.75;
constexpr size_t kHexDigits = 8;

// Distinct values of each categorical column, small to large as in a real log.
constexpr std::array<double, kCategories> kCardinality = {
    1'400,  550,   500'000, 200'000, 300, 20,      12'000,  600,   3,
    90'000, 5'000, 400'000, 3'200,   26,  12'000,  300'000, 10,    5'000,
    2'100,  4,     350'000, 18,      15,  100'000, 90,      60'000};

// Zipf-like with exponent 1: rank r with density ~ 1/r, by inversion.
uint64_t PickRank(double cardinality, RowRandom& random) {
  return static_cast<uint64_t>(std::pow(cardinality, random.Uniform())) - 1;
}

// Weight k of a value of a column, in [-1, 1]; the same for every row and seed of the table.
double ValueWeight(uint64_t seed, size_t column, uint64_t value, size_t k) {
  const uint64_t bits =
      MixBits(seed + 0x5851F42D4C957F2DULL * (column * 8 + k + 1) + MixBits(value + 1));
  return static_cast<double>(bits >> 11U) * 0x1p-52 - 1.0;
}

class ClicksSample final : public SampleGenerator {
 public:
  explicit ClicksSample(uint64_t seed) : seed_(seed) {
    schema_.columns.push_back({"label", DataType::kInt64, "integer"});
    for (size_t i = 0; i < kNumbers; ++i) {
      schema_.columns.push_back({fmt::format("i{}", i + 1), DataType::kInt64, "integer"});
    }
    for (size_t i = 0; i < kCategories; ++i) {
      schema_.columns.push_back({fmt::format("c{}", i + 1), DataType::kText, "text"});
    }
  }

  const Schema& schema() const override { return schema_; }

  void Fill(int64_t first, size_t rows, RowBatch* batch,
            std::vector<double>* probabilities) const override {
    batch->Reset(schema_, rows);
    batch->rows = rows;
    batch->arena.resize(rows * kCategories * kHexDigits);  // before the texts point into it
    probabilities->resize(rows);
    for (size_t r = 0; r < rows; ++r) {
      (*probabilities)[r] = PutRow(first + static_cast<int64_t>(r), r, batch);
    }
  }

 private:
  double PutRow(int64_t row, size_t r, RowBatch* batch) const {
    RowRandom random(seed_, row);
    double log_odds = kClickIntercept;
    for (size_t i = 0; i < kNumbers; ++i) {
      const double size = 1.5 + 0.3 * static_cast<double>(i % 5);
      const double logarithm = std::max(0.0, size + 1.2 * random.Normal());
      RowBatch::Column& column = batch->columns[1 + i];
      column.null[r] = random.Chance(0.04 * static_cast<double>(i % 6)) ? 1 : 0;
      column.int64s[r] = static_cast<int64_t>(std::expm1(logarithm));
      if (column.null[r] == 0) {
        log_odds += (i % 2 == 0 ? 0.15 : -0.12) * (logarithm - size);
      }
    }
    log_odds += PutCategories(r, batch, random);
    const double probability = Sigmoid(log_odds);
    batch->columns[0].null[r] = 0;
    batch->columns[0].int64s[r] = random.Chance(probability) ? 1 : 0;
    return probability;
  }

  double PutCategories(size_t r, RowBatch* batch, RowRandom& random) const {
    double linear = 0;
    std::array<double, kFactors> sum{};
    std::array<double, kFactors> squares{};
    for (size_t i = 0; i < kCategories; ++i) {
      const uint64_t rank = PickRank(kCardinality[i], random);
      RowBatch::Column& column = batch->columns[1 + kNumbers + i];
      column.null[r] = i % 7 == 5 && random.Chance(0.1) ? 1 : 0;
      char* text = batch->arena.data() + (r * kCategories + i) * kHexDigits;
      PutHex(MixBits(i * 1'000'003 + rank), text);
      column.texts[r] = std::string_view(text, kHexDigits);
      if (column.null[r] != 0) {
        continue;
      }
      linear += 0.35 * ValueWeight(seed_, i, rank, 0);
      if (i < kInteracting) {
        for (size_t k = 0; k < kFactors; ++k) {
          const double factor = 0.55 * ValueWeight(seed_, i, rank, k + 1);
          sum[k] += factor;
          squares[k] += factor * factor;
        }
      }
    }
    double pairs = 0;
    for (size_t k = 0; k < kFactors; ++k) {
      pairs += (sum[k] * sum[k] - squares[k]) / 2;
    }
    return linear + pairs;
  }

  static void PutHex(uint64_t bits, char* text) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < kHexDigits; ++i) {
      text[i] = kDigits[(bits >> (4 * i)) & 0xFU];
    }
  }

  const uint64_t seed_;
  Schema schema_;
};

}  // namespace

std::unique_ptr<SampleGenerator> MakeClicksSample(uint64_t seed) {
  return std::make_unique<ClicksSample>(seed);
}

}  // namespace sluice::server
