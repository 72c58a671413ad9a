// The files of the small model of this site.

const FOLDER = new URL("../../capitals/", import.meta.url)

/** One of them; throws where it cannot be loaded. @param {string} name */
export async function fileOf(name) {
  const answer = await fetch(new URL(name, FOLDER))
  if (!answer.ok) throw new Error(`${name} could not be loaded: ${answer.status}`)
  return answer
}
