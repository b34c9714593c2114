#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::models {

// Numbers the distinct rows of a table that the ids of a batch choose, in order of first
// occurrence. Not thread-safe.
class IdNumbering {
 public:
  // `stamps`: the largest number of stamps it may use, 8 bytes each.
  IdNumbering(int64_t rows, int64_t stamps);
  int64_t stamps() const { return by_stamp_ ? rows_ : 0; }
  // Forgets all rows; reserves room for this many occurrences until the next Start.
  void Start(size_t occurrences);
  // Id i of a feature is row `first_row` + i. Appends to `rows` those that were not seen since
  // Start, and writes the number of each id's row to `positions`.
  void Number(const std::vector<uint32_t>& feature_ids, int64_t first_row,
              std::vector<int64_t>* rows, uint32_t* positions);

 private:
  void NumberByStamp(const std::vector<uint32_t>& feature_ids, int64_t first_row,
                     std::vector<int64_t>* rows, uint32_t* positions);
  void NumberByHash(const std::vector<uint32_t>& feature_ids, int64_t first_row,
                    std::vector<int64_t>* rows, uint32_t* positions);

  struct Stamp {
    uint32_t round = 0;  // valid when equal to round_
    uint32_t number = 0;
  };
  struct Entry {
    int64_t row = 0;
    Stamp stamp;
  };
  int64_t rows_;
  bool by_stamp_;
  uint32_t round_ = 0;
  std::vector<Stamp> stamps_;   // one per row, from the first batch on
  std::vector<Entry> entries_;  // open addressing, a power of two
};

}  // namespace sluice::models
