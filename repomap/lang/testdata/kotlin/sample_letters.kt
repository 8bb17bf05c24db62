class LettersTest {
  @Test fun `a quote in a text`() {
    val text = """
      |query(""${'"'}
      |SELECT 1
      |""${'"'}.trimMargin())
    """
  }

  @Test fun `what follows on it`() {
    val text = "${'\n'} ${if (x == '{') "a" else "b"}"
  }

  fun after() {}
}
