#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "elastic/job/tree_checkpoints.h"
#include "elastic/queue/ledger.h"
#include "tests/fuzz/target.h"

// A checkpoint of boosted trees over two shards. (What they have remembered: tree_pass.)
namespace sluice::elastic {
namespace {

void ReadTrees(std::string_view input) {
  constexpr int64_t kShards = 2;
  const Result<TreeCheckpoint> trees = TreeCheckpoint::Decode(input, kShards);
  if (!trees.ok()) {
    return;
  }
  Ledger ledger(kShards);
  ledger.Expect(trees->rows);
  for (const ShardId shard : {ShardId(0), ShardId(1)}) {
    static_cast<void>(ledger.CheckRows(shard, 5));
    static_cast<void>(ledger.CheckChecksum(shard, 5));
  }
  const Result<TreeCheckpoint> again = TreeCheckpoint::Decode(trees->Encode().value(), kShards);
  SLUICE_CHECK(
      again.ok() && again->remembered == trees->remembered && again->rows.rows == trees->rows.rows,
      "a checkpoint is read as it was written");
}

}  // namespace
}  // namespace sluice::elastic

FUZZ_TARGET(tree_checkpoint) {
  sluice::elastic::ReadTrees({reinterpret_cast<const char*>(data), size});
  return 0;
}
