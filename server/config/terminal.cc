#include "server/config/terminal.h"

#include "base/utf8.h"

namespace sluice::server {

void Say(std::string_view message) {
  const std::string shown = PrintableLines(message);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fflush(stderr);
}

void SayError(const Status& status, std::string_view script) {
  Say(RenderWithCaret(status, script));
}

}  // namespace sluice::server
