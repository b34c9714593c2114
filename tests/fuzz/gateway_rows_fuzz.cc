#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"
#include "server/config/terminal.h"
#include "server/gateway/gateway_updates_internal.h"
#include "server/shell/shell_sink.h"
#include "tests/fuzz/target.h"

namespace {

using sluice::server::OutputFormat;

constexpr OutputFormat kFormats[] = {OutputFormat::kTable, OutputFormat::kCsv, OutputFormat::kJson};

}  // namespace

// Arbitrary updates of a gateway, each preceded by its length, received by a shell: they are
// refused with an error, or shown, in each format.
FUZZ_TARGET(gateway_rows) {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  for (const OutputFormat format : kFormats) {
    const size_t columns = size % 2 == 0 ? 0 : 80;
    sluice::server::ShellSink sink(
        {.format = format},
        {.out = nowhere, .err = nowhere, .out_columns = columns, .err_columns = columns});
    sluice::server::GatewayUpdates updates;
    google::protobuf::io::ArrayInputStream bytes(data, static_cast<int>(size));
    sluice::v1::RunUpdate update;
    bool clean_end = false;
    while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&update, &bytes, &clean_end)) {
      const sluice::Status status = updates.Apply(update, sink);
      if (!status.ok()) {
        const std::string shown =
            sluice::PrintableLines(sluice::RenderWithCaret(status, "SELECT 1;\nSELECT 2"));
        const bool bad = std::any_of(shown.begin(), shown.end(), [](char c) {
          return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
        });
        if (shown.empty() || bad) {
          std::abort();
        }
        break;
      }
      update.Clear();
    }
    if (!sink.Finish().ok()) {
      std::abort();
    }
  }
  return 0;
}
