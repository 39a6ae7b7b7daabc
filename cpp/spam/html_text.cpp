// Visible text, hidden text and links of HTML, as in tallybayes/apps/spam.
#include <algorithm>

#include "spam/mail_text.h"

namespace tallybayes {

namespace {

constexpr size_t nowhere = std::string_view::npos;
constexpr size_t most = 4000;  // characters of a tag that are read

bool is_at(std::string_view text, size_t at, std::string_view word) {
  return at <= text.size() && text.substr(at, word.size()) == word;
}

// Removes comments, which are hidden.
std::string without_comments(std::string_view html, std::string& hidden) {
  std::string found;
  size_t start = html.find("<!--");
  found += html.substr(0, start);
  while (start != nowhere) {
    const size_t first = start + 4, next = html.find("<!--", first);
    const std::string_view piece = html.substr(first, next == nowhere ? nowhere : next - first);
    const size_t end = piece.find("-->");
    if (end == nowhere) {
      found += piece;
    } else {
      hidden += piece.substr(0, end);
      hidden += ' ';
      found += piece.substr(end + 3);
    }
    start = next;
  }
  return found;
}

}  // namespace

// Number of blanks that follow, of which at most nine are skipped.
size_t MailTokens::blanks(std::string_view text, size_t at) const {
  size_t n = 0;
  while (n < 9 && at + n < text.size() && is_.is(text[at + n], MailCharacters::space)) n++;
  return n;
}

// Blanks, an optional quotation mark, and the name of a white.
bool MailTokens::is_white(std::string_view text, size_t at) const {
  at += blanks(text, at);
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) at++;
  return is_at(text, at, "#fff") || is_at(text, at, "white");
}

void MailTokens::find_addresses(std::string_view tag, MailPage& page) const {
  static constexpr std::string_view names[] = {"href", "src", "background", "action"};
  const auto in_address = [&](char c) {
    return c != '"' && c != '\'' && c != '<' && c != '>' && !is_.is(c, MailCharacters::space);
  };
  tag = tag.substr(0, most);
  for (size_t at = 0; at < tag.size();) {
    const std::string_view* name = nullptr;
    if (tag[at] == 'h' || tag[at] == 's' || tag[at] == 'b' || tag[at] == 'a') {
      name = std::find_if(std::begin(names), std::end(names), [&](std::string_view one) { return is_at(tag, at, one); });
    }
    if (!name || name == std::end(names)) {
      at++;
      continue;
    }
    size_t next = at + name->size();
    next += blanks(tag, next);
    if (next >= tag.size() || tag[next] != '=') {
      at++;
      continue;
    }
    next += 1 + blanks(tag, next + 1);
    if (next < tag.size() && (tag[next] == '"' || tag[next] == '\'')) next++;
    const size_t first = next;
    while (next < tag.size() && next < first + 1000 && in_address(tag[next])) next++;
    if (next == first) {
      at++;
      continue;
    }
    const bool link = *name == "href" || *name == "action";
    (link ? page.links : page.sources).emplace_back(tag.substr(first, next - first));
    at = next;
  }
}

// Whether a color other than white is painted below the text.
bool MailTokens::paints(std::string_view tag) const {
  tag = tag.substr(0, most);
  for (size_t at = tag.find('b'); at != nowhere; at = tag.find('b', at + 1)) {
    if (is_at(tag, at, "background")) return true;
    if (!is_at(tag, at, "bgcolor")) continue;
    const size_t equals = at + 7 + blanks(tag, at + 7);
    if (is_at(tag, equals, "=") && !is_white(tag, equals + 1)) return true;
  }
  return false;
}

// What hides the text of a tag: 0 nothing, 1 the first match does on any background, 2 on white.
int MailTokens::hides(std::string_view tag) const {
  tag = tag.substr(0, most);
  const auto value_at = [&](size_t at) {  // after a colon and blanks, or none
    at += blanks(tag, at);
    return is_at(tag, at, ":") ? at + 1 + blanks(tag, at + 1) : nowhere;
  };
  for (size_t at = 0; at < tag.size(); at++) {
    if (is_at(tag, at, "display")) {
      if (is_at(tag, value_at(at + 7), "none")) return 1;
    } else if (is_at(tag, at, "visibility")) {
      if (is_at(tag, value_at(at + 10), "hidden")) return 1;
    } else if (is_at(tag, at, "font-size")) {
      const size_t value = value_at(at + 9);
      if (!is_at(tag, value, "0") && !is_at(tag, value, "1")) continue;
      const char next = value + 1 < tag.size() ? tag[value + 1] : ' ';
      if ((next < '0' || next > '9') && next != '.') return 1;
    } else if (is_at(tag, at, "color")) {
      const char before = at ? tag[at - 1] : ' ';
      if (before == '-' || before == '_' || is_.is(before, MailCharacters::alnum)) continue;
      const size_t sign = at + 5 + blanks(tag, at + 5);
      if ((is_at(tag, sign, ":") || is_at(tag, sign, "=")) && is_white(tag, sign + 1)) return 2;
    }
  }
  return 0;
}

MailPage MailTokens::read_page(std::string_view html) const {
  MailPage page;
  std::string rest, unread;
  if (html.find("<!--") != nowhere) {
    rest = without_comments(html, page.hidden);
    html = rest;
  }
  const auto keep_name = [&](const std::string& name) {
    if (page.tags.size() < reference_.limits.tags &&
        std::find(page.tags.begin(), page.tags.end(), name) == page.tags.end()) {
      page.tags.push_back(name);
    }
  };
  std::string *into = &page.visible, until, tag;
  bool white = true;
  size_t start = html.find('<');
  page.visible += html.substr(0, start);
  while (start != nowhere) {
    const size_t next = html.find('<', start + 1);
    const std::string_view piece = html.substr(start + 1, next == nowhere ? nowhere : next - start - 1);
    start = next;
    const size_t end = piece.find('>');
    if (end == nowhere || end == 0) {
      *into += '<';
      *into += piece;
      continue;
    }
    const std::string_view text = piece.substr(end + 1);
    tag = piece.substr(0, end);
    if (until.empty()) {
      const auto simple = reference_.simple.find(tag);
      if (simple != reference_.simple.end()) {
        if (!reference_.in_words.count(simple->second)) page.visible += ' ';
        page.visible += text;
        if (simple->second[0] != '/') keep_name(simple->second);
        continue;
      }
    }
    for (char& c : tag) c = is_.lowered(c);
    const auto blank = [&](char c) { return is_.is(c, MailCharacters::space); };
    const auto first = std::find_if_not(tag.begin(), tag.end(), blank);
    const std::string name(first, std::find_if(first, tag.end(), blank));
    if (name == until) {
      *into += ' ';
      into = &page.visible;
      until.clear();
    }
    if (tag.find('=') != nowhere) {
      find_addresses(tag, page);
      if (white && paints(tag)) white = false;
      if (until.empty() && (tag.find("olor") != nowhere || tag.find("style") != nowhere)) {
        const int how = hides(tag);
        if (how == 1 || (how == 2 && white)) {
          into = &page.hidden;
          until = "/" + name;
        }
      }
    }
    if (until.empty() && reference_.unread.count(name)) {
      unread.clear();
      into = &unread;
      until = "/" + name;
    }
    if (!reference_.in_words.count(name)) *into += ' ';
    if (name.empty() || name[0] != '/') keep_name(name);
    *into += text;
  }
  if (page.visible.find('&') != nowhere) page.visible = reference_.characters(page.visible);
  if (page.hidden.find('&') != nowhere) page.hidden = reference_.characters(page.hidden);
  page.hidden = stripped(page.hidden);
  return page;
}

}  // namespace tallybayes
