#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "server/pgwire/client_line.h"
#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {

// Writes the answer to a statement of ours as messages. Belongs to the statement's thread.
class WireSink final : public executor::ResultSink {
 public:
  struct Options {
    bool describe_rows = false;                             // before the rows
    std::vector<uint16_t> result_formats;                   // as Bind gives them
    uint32_t max_rows = 0;                                  // rows before it is suspended; 0: all
    std::optional<ClientEncoding> encoding = std::nullopt;  // of the texts in rows; nullopt: UTF-8
    // What the client knows of the columns; none: nothing. 0A000: they have become others.
    std::vector<WireColumn> described = {};
  };
  WireSink(std::shared_ptr<ClientLine> line, Options options);

  // From here on, sends progress notices at this interval (nullopt: never), and other notices
  // unless `quiet`.
  void TellProgress(std::optional<std::chrono::milliseconds> every, bool quiet);

  std::vector<bool> InBinary(const Schema& schema) override;
  Status Header(const Schema& schema) override;
  Status Rows(const RowBatch& batch) override;
  void Notice(const std::string& message) override;
  void Progress(const elastic::Progress& progress) override;
  void Done(const std::string& tag) override;

 private:
  Status Send(std::string bytes);

  const std::shared_ptr<ClientLine> line_;
  const Options options_;
  std::vector<WireColumn> columns_;
  uint64_t rows_ = 0;
  int64_t rows_left_;  // before it is suspended
  std::optional<std::chrono::milliseconds> progress_every_ = std::chrono::seconds(1);
  bool quiet_ = false;
  std::chrono::steady_clock::time_point last_progress_;
};

// Descriptions of a result's columns; `formats` as in Bind.
Result<std::vector<WireColumn>> WireColumns(const Schema& schema,
                                            const std::vector<uint16_t>& formats);

}  // namespace sluice::server::pgwire
