// A worker, which keeps the page responsive: parses questions with the command line's grammar and answers them with
// the engine that the tools use. The engine is loaded with the first question that has an answer.

import { M, py } from "../engine/question.mjs"

/**
 * @typedef {object} Lead a result that needs no index
 * @property {string} kind
 * @property {string} address
 * @property {string} title
 * @property {string} said
 * @property {boolean} isComputed whether its answer is computed
 *
 * @typedef {object} Read what a question means
 * @property {Lead[]} leads
 * @property {string} note what was read otherwise than it was typed, and what was not used
 * @property {[typed: string, meant: string][]} corrected
 * @property {{ record: number, isSure: boolean }[]} models
 * @property {boolean} isAbsent whether it names a model that the catalog lacks
 *
 * @typedef {{ title: string, said: string, fitting: Lead? }} Answer
 */

const { Grammar } = M["catalogue.question_table"],
  { meant } = M["catalogue.question"],
  { leads, note_of: noteOf } = M["catalogue.question_leads"],
  { with_format: withFormat } = M["catalogue.question_of_model"]

/** @type {Engine.Grammar} */
let grammar
/** @type {Promise<void> | undefined} */
let ready
/**
 * @param {string} names the address of what a question may name
 * @param {string[][]} records of the models
 */
async function prepare(names, records) {
  const answer = await fetch(names)
  if (!answer.ok) throw new Error(`${answer.status} ${answer.url}`)
  grammar = Grammar(py.parse(await answer.text()), records)
}

const lead = (/** @type {Engine.Lead} */ { kind, address, title, said, compute }) => ({
  kind,
  address,
  title,
  said,
  isComputed: compute !== null,
})

/**
 * Parses a question; the name resolver is loaded with the first question that needs it.
 * @param {string} question
 */
async function meaningOf(question) {
  if (grammar.catalog.resolving === null) {
    try {
      return meant(question, grammar)
    } catch {
      const { M: more } = await import("../engine/resolving.mjs")
      grammar.catalog.resolving = more["catalogue.resolving"].Resolver
    }
  }
  return meant(question, grammar)
}

/**
 * @param {string} question
 * @returns {Promise<Read>}
 */
async function read(question) {
  const meaning = await meaningOf(question)
  return {
    leads: leads(meaning, grammar).map(lead),
    note: noteOf(meaning),
    corrected: meaning.corrected,
    models: meaning.models.map(({ record, is_sure: isSure }) => ({ record: Number(record), isSure })),
    isAbsent: meaning.absent.length > 0,
  }
}

/**
 * The answers of the results that have one, in order; a single answer if they all agree.
 * @param {string} question
 * @returns {Promise<Answer[]>}
 */
async function answer(question) {
  const found = leads(await meaningOf(question), grammar)
  const asked = found.flatMap(one => (one.compute === null ? [] : [{ ...lead(one), one, compute: one.compute }]))
  const { allComputed } = await import("./computed.mjs"),
    answers = await allComputed(asked.map(({ compute }) => compute))
  return answers.map(({ title, said, format }, n) => ({
    title: title ?? asked[n].title,
    said,
    fitting: format === null || !asked[n].one.address.includes("?") ? null : lead(withFormat(asked[n].one, format)),
  }))
}

addEventListener("message", async ({ data: { number, names, records, question, isAnswer } }) => {
  try {
    if (names) ready = prepare(names, records)
    await ready
    postMessage({
      number,
      result: question === undefined ? null : await (isAnswer ? answer(question) : read(question)),
    })
  } catch (error) {
    postMessage({ number, problem: error instanceof Error ? error.message : `${error}` })
  }
})
