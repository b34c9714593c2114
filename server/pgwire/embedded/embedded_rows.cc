#include <fmt/core.h>

#include <utility>

#include "server/pgwire/embedded/embedded_server.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/sql_words_internal.h"

// The rows of a running statement: described, formatted, held back, completed.
namespace sluice::server::pgwire {
namespace {

// The types of an undescribed result are inferred from this many first rows.
constexpr size_t kFirstRows = 100;
constexpr size_t kFirstBytes = size_t{64} << 10;

}  // namespace

Status EmbeddedServer::Begin(Running running, const std::vector<uint16_t>& formats) {
  if (!in_script_) {
    ASSIGN_OR_RETURN(running.columns, DescribeColumns(*running.source->statement, formats));
    running.described = true;
  }
  running_ = std::move(running);
  return OkStatus();
}

Status EmbeddedServer::RunOn() {
  Running& running = *running_;
  Source& source = *running.source;
  if (running.columns.empty() && !running.described) {
    ASSIGN_OR_RETURN(running.columns, DescribeColumns(*source.statement, {}));
    running.described = running.columns.empty() || running.copy.has_value() || running.silent;
    if (running.copy.has_value()) {
      AppendCopyBegins(*out_, 'H', running.columns.size(), running.copy->binary);
      if (running.copy->binary) {
        AppendMessage(*out_, 'd', BinaryCopyHeader());
        for (WireColumn& column : running.columns) {
          column.format = 1;
        }
      } else if (running.copy->header) {
        CopyRow names;
        for (const WireColumn& column : running.columns) {
          names.emplace_back(column.name);
        }
        AppendMessage(*out_, 'd', CopyLine(names, *running.copy));
      }
    }
  }
  if (running.rows >= static_cast<int64_t>(kFirstRows)) {  // more rows will follow
    out_->reserve(kEnoughSaid + kEnoughSaid / 4);
  }
  while (out_->size() < kEnoughSaid) {
    if (source.done || (running.limit >= 0 && running.rows >= running.limit)) {
      if (!source.done) {
        if (const Status held = CheckHeld(); !held.ok()) {
          Forget(running.source);
          return held;
        }
      }
      Complete();
      return OkStatus();
    }
    const Result<bool> row = source.statement->Step();
    if (!row.ok()) {
      if (row.status().sqlstate() == "55P03") {
        source.statement->Reset();
        // A retry would send rows twice, so it is only possible before the first.
        return running.rows == 0 || !Stopped(row.status()) ? row.status()
                                                           : Status(row.status()).SqlState("40001");
      }
      return row.status();
    }
    source.begun = true;
    source.done = !*row;
    if (*row) {
      ++running.rows;
      RETURN_IF_ERROR(Emit());
    }
  }
  return OkStatus();
}

// Of the current row.
Result<catalog::EmbeddedCell> EmbeddedServer::CellToCopy(size_t column) {
  const catalog::EmbeddedCell cell = running_->source->statement->Cell(column);
  RETURN_IF_ERROR(copies_.Add(cell.bytes.size()));
  return cell;
}

Status EmbeddedServer::Emit() {
  Running& running = *running_;
  if (running.silent) {
    return OkStatus();
  }
  if (running.described) {
    return AppendCurrentRow();
  }
  std::vector<KeptCell>& row = running.first.emplace_back();
  for (size_t i = 0; i < running.columns.size(); ++i) {
    ASSIGN_OR_RETURN(const catalog::EmbeddedCell cell, CellToCopy(i));
    row.emplace_back(cell);
    running.first_bytes += row.back().bytes.size();
  }
  if (running.first.size() >= kFirstRows || running.first_bytes >= kFirstBytes) {
    DescribeFirst();
  }
  return OkStatus();
}

// The columns' types, then the rows that were held back for them.
void EmbeddedServer::DescribeFirst() {
  Running& running = *running_;
  const auto& declared = running.source->statement->columns();
  std::vector<catalog::EmbeddedCell> cells;
  for (size_t i = 0; i < running.columns.size(); ++i) {
    cells.clear();
    for (const std::vector<KeptCell>& row : running.first) {
      cells.push_back(row[i].Get());
    }
    running.columns[i].type = TypeOfCells(declared[i].type, cells);
  }
  AppendRowDescription(*out_, running.columns);
  running.described = true;
  for (std::vector<KeptCell>& row : running.first) {
    AppendRow(row);
    row = {};  // a cell may be large
  }
  running.first.clear();
}

void EmbeddedServer::AppendRow(const std::vector<KeptCell>& row) {
  const size_t begin = BeginRow(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    // In text every cell has a form.
    [[maybe_unused]] const Status appended = AppendField(row[i].Get(), running_->columns[i], out_);
  }
  EndRow(begin);
}

// Of a DataRow, written where it is sent from. Returns its place.
size_t EmbeddedServer::BeginRow(size_t cells) {
  const size_t begin = out_->size();
  *out_ += 'D';
  out_->append(kLengthBytes, '\0');
  AppendBigEndian<int16_t>(static_cast<int16_t>(cells), out_);
  return begin;
}

void EmbeddedServer::EndRow(size_t begin) {
  PutUint32(*out_, begin + 1, static_cast<uint32_t>(out_->size() - begin - 1));
}

Status EmbeddedServer::AppendCurrentRow() {
  const Running& running = *running_;
  if (running.copy.has_value() && running.copy->binary) {
    std::string row;
    AppendBigEndian<int16_t>(static_cast<int16_t>(running.columns.size()), &row);
    for (size_t i = 0; i < running.columns.size(); ++i) {
      ASSIGN_OR_RETURN(const catalog::EmbeddedCell cell, CellToCopy(i));
      RETURN_IF_ERROR(AppendField(cell, running.columns[i], &row));
    }
    AppendMessage(*out_, 'd', row);
    return OkStatus();
  }
  if (running.copy.has_value()) {
    CopyRow row;
    for (size_t i = 0; i < running.columns.size(); ++i) {
      ASSIGN_OR_RETURN(const catalog::EmbeddedCell cell, CellToCopy(i));
      row.push_back(cell.kind == catalog::EmbeddedCell::Kind::kNull
                        ? std::nullopt
                        : std::optional(CellText(cell, running.columns[i].type.oid)));
    }
    AppendMessage(*out_, 'd', CopyLine(row, *running.copy));
    return OkStatus();
  }
  const size_t begin = BeginRow(running.columns.size());
  for (size_t i = 0; i < running.columns.size(); ++i) {
    const Result<catalog::EmbeddedCell> cell = CellToCopy(i);
    Status appended = cell.ok() ? AppendField(*cell, running.columns[i], out_) : cell.status();
    if (!appended.ok()) {
      out_->resize(begin);
      return appended;
    }
  }
  EndRow(begin);
  return OkStatus();
}

void EmbeddedServer::Complete() {
  if (!running_->described) {
    DescribeFirst();
  }
  const Running running = *std::exchange(running_, std::nullopt);
  if (running.suspends && !running.source->done) {
    AppendMessage(*out_, 's', {});
    Ends(OkStatus(), "", &running);
    return;
  }
  if (running.copy.has_value() && running.copy->binary) {
    AppendMessage(*out_, 'd', BinaryCopyTrailer());
  }
  if (running.copy.has_value()) {
    AppendMessage(*out_, 'c', {});
  }
  std::string tag = running.verb;
  if (tag == "INSERT" || tag == "REPLACE") {
    tag = fmt::format("INSERT 0 {}", session_->changes());
  } else if (tag == "UPDATE" || tag == "DELETE") {
    tag = fmt::format("{} {}", tag, session_->changes());
  } else if (tag == "FETCH" || tag == "MOVE" || tag == "COPY") {
    tag = fmt::format("{} {}", tag, running.rows);
  } else if (!running.columns.empty()) {
    tag = tag == "SHOW" ? tag : fmt::format("SELECT {}", running.rows);
  } else if (tag.starts_with("CREATE") || tag.starts_with("DROP") || tag.starts_with("ALTER")) {
    const std::string_view text =
        in_script_ ? TextOf(script_, statements_[next_ - 1]) : std::string_view(script_);
    std::string_view what = FirstWord(text);
    do {
      what = FirstWord(text.substr(static_cast<size_t>(what.data() - text.data()) + what.size()));
    } while (EqualsWord(what, "TEMP") || EqualsWord(what, "TEMPORARY") ||
             EqualsWord(what, "UNIQUE") || EqualsWord(what, "VIRTUAL"));
    tag += " " + UpperWord(what);
  }
  AppendCommandComplete(*out_, tag);
  Ends(OkStatus(), tag, &running);
}

}  // namespace sluice::server::pgwire
