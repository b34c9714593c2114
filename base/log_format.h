#pragma once

namespace sluice::log {

// kJson: an object a line, with `time` (RFC 3339), `level`, `process` and `message`.
enum class Format { kText, kJson };

// How lines are written (text): call before Start.
void WriteAs(Format format);

}  // namespace sluice::log
