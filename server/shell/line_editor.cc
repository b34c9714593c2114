#include "server/shell/line_editor.h"

#include <fmt/core.h>
#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/shell/shell_sink.h"
#include "server/shell/table_layout.h"

namespace sluice::server {
namespace {

constexpr int kHistoryStatements = 1'000;  // as in most shells
constexpr size_t kMaxListed = 200;         // candidates shown by Tab

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
}

// The common prefix of all candidates, in the first one's spelling.
std::string CommonStart(const std::vector<std::string>& candidates) {
  std::string start = candidates.front();
  for (const std::string& candidate : candidates) {
    size_t same = 0;
    while (same < std::min(start.size(), candidate.size()) &&
           std::tolower(static_cast<unsigned char>(start[same])) ==
               std::tolower(static_cast<unsigned char>(candidate[same]))) {
      ++same;
    }
    while (same > 0 && same < start.size() && IsContinuation(start[same])) {
      --same;
    }
    start.resize(same);
  }
  return start;
}

// Shows the candidates in columns, below the line that is being edited.
void ShowCandidates(const std::vector<std::string>& candidates) {
  const size_t listed = std::min(candidates.size(), kMaxListed);
  size_t widest = 0;
  for (size_t i = 0; i < listed; ++i) {
    widest = std::max(widest, DisplayWidth(Printable(candidates[i])));
  }
  const size_t columns = std::max<size_t>(TerminalColumns(STDOUT_FILENO) / (widest + 2), 1);
  const size_t lines = (listed + columns - 1) / columns;
  std::string text = "\n";
  for (size_t line = 0; line < lines; ++line) {
    for (size_t i = line; i < listed; i += lines) {
      const std::string shown = Printable(candidates[i]);
      text += shown;
      text += i + lines < listed ? std::string(widest + 2 - DisplayWidth(shown), ' ') : "";
    }
    text += '\n';
  }
  if (listed < candidates.size()) {
    text += fmt::format("... and {} more\n", candidates.size() - listed);
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

struct LineEditor::State {
  State(Interrupts& signals, Completer what_follows)
      : interrupts(signals), completer(std::move(what_follows)) {}
  Interrupts& interrupts;
  const Completer completer;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string history_file;
  std::string prompt;
  bool interrupted = false;

  static State* Of(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return static_cast<State*>(state);
  }

  static char* Prompt(EditLine* editor) { return Of(editor)->prompt.data(); }

  // Tab: inserts what all candidates share, and lists them if that is nothing.
  static unsigned char Complete(EditLine* editor, int /*key*/) {
    const LineInfo* const info = el_line(editor);
    const std::string_view line(info->buffer, static_cast<size_t>(info->cursor - info->buffer));
    const State* const state = Of(editor);
    if (!state->completer || line.find_first_not_of(" \t") == std::string_view::npos) {
      el_insertstr(editor, "  ");  // Tab characters in pasted text are indentation
      return CC_REFRESH;
    }
    const Completion completion = state->completer(line);
    if (completion.candidates.empty()) {
      return CC_REFRESH_BEEP;
    }
    const std::string_view typed =
        line.substr(line.size() - std::min(line.size(), completion.replaced));
    std::string insert = CommonStart(completion.candidates);
    if (completion.candidates.size() == 1) {
      insert += completion.suffix;
    } else if (insert.size() <= typed.size()) {
      ShowCandidates(completion.candidates);
      return CC_REDISPLAY;
    }
    el_deletestr(editor, static_cast<int>(std::count_if(typed.begin(), typed.end(), [](char c) {
                   return !IsContinuation(c);
                 })));
    el_insertstr(editor, insert.c_str());
    return CC_REFRESH;
  }

  // Callback of libedit to read a character: 1 read, 0 end of file, -1 error. Waits for the
  // terminal and for Ctrl-C at once, because the signal arrives in another thread.
  static int ReadCharacter(EditLine* editor, wchar_t* character) {
    State* state = Of(editor);
    std::mbstate_t shift{};
    for (;;) {
      pollfd ready[] = {{STDIN_FILENO, POLLIN, 0},
                        {state->interrupts.wake_descriptor(), POLLIN, 0}};
      if (poll(ready, 2, -1) < 0) {
        if (errno == EINTR) {
          continue;
        }
        return -1;
      }
      if (ready[1].revents != 0) {
        state->interrupts.ClearWake();
        state->interrupted = true;
        tcflush(STDIN_FILENO, TCIFLUSH);  // discard the rest of the input that was to be cancelled
        return -1;
      }
      char byte = 0;
      const ssize_t size = read(STDIN_FILENO, &byte, 1);
      if (size <= 0) {
        return static_cast<int>(size);
      }
      const size_t length = std::mbrtowc(character, &byte, 1, &shift);
      if (length == static_cast<size_t>(-2)) {
        continue;  // the next byte belongs to the same character
      }
      if (length == static_cast<size_t>(-1)) {
        shift = std::mbstate_t{};  // not a character of this locale: skip it
        continue;
      }
      return 1;
    }
  }
};

LineEditor::LineEditor(const std::string& history_file, Interrupts& interrupts, Completer completer)
    : state_(std::make_unique<State>(interrupts, std::move(completer))) {
  std::setlocale(LC_CTYPE, "");
  State& state = *state_;
  state.history_file = history_file;
  state.history = history_init();
  history(state.history, &state.event, H_SETSIZE, kHistoryStatements);
  history(state.history, &state.event, H_SETUNIQUE, 1);
  if (!history_file.empty()) {
    history(state.history, &state.event, H_LOAD, history_file.c_str());  // missing at first
  }
  state.editor = el_init("sluice", stdin, stdout, stderr);
  el_set(state.editor, EL_CLIENTDATA, &state);
  el_set(state.editor, EL_PROMPT, &State::Prompt);
  el_set(state.editor, EL_EDITOR, "emacs");
  el_set(state.editor, EL_HIST, &history, state.history);
  el_set(state.editor, EL_GETCFN, &State::ReadCharacter);
  // The terminal would flush its buffers at Ctrl-C, including our output, and a prompt written
  // right after it would be lost.
  for (const char* mode : {"-d", "-x"}) {
    el_set(state.editor, EL_SETTY, mode, "+noflsh", nullptr);
  }
  el_set(state.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(state.editor, EL_ADDFN, "sluice-complete", "complete the word", &State::Complete);
  el_set(state.editor, EL_BIND, "^I", "sluice-complete", nullptr);
  el_source(state.editor, nullptr);  // ~/.editrc
}

LineEditor::~LineEditor() {
  if (!state_->history_file.empty() &&
      history(state_->history, &state_->event, H_SAVE, state_->history_file.c_str()) < 0) {
    Say(fmt::format("the history could not be written to {}\n", state_->history_file));
  }
  el_end(state_->editor);
  history_end(state_->history);
}

LineEditor::Line LineEditor::Read(const std::string& prompt) {
  State& state = *state_;
  state.prompt = prompt;
  state.interrupted = false;
  int length = 0;
  // Switch the terminal's mode before showing the prompt: otherwise the terminal itself would
  // handle a key pressed between the prompt and el_gets, and lose Ctrl-D.
  el_set(state.editor, EL_PREP_TERM, 1);
  const char* text = el_gets(state.editor, &length);
  if (state.interrupted) {
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return {Kind::kInterrupted, ""};
  }
  if (text == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    return {Kind::kEnd, ""};
  }
  std::string line(text, static_cast<size_t>(length));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) {
    line.pop_back();
  }
  return {Kind::kText, std::move(line)};
}

void LineEditor::Remember(const std::string& statement) {
  history(state_->history, &state_->event, H_ENTER, statement.c_str());
}

}  // namespace sluice::server
